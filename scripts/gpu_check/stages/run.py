"""GPT-2's step on the GPU by `fxopt run`: time compared with PyTorch's eager kernels and its CUDA
graphs, launch cost and memory; and one matrix product."""

from __future__ import annotations

import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

from fxopt_program import Fxopt
from results import Row, gib, ratio, table
from stage import ROOT, Context, Process, Stage, each_unit
from step_runs import PASSES, prepared, run_step

VARIANTS = ("none", *PASSES)
REPEAT = 20
SIDE = 4096
PRODUCT = f"""fxg 0
graph @product {{
  %a: f32[{SIDE}, {SIDE}] = placeholder()
  %b: f32[{SIDE}, {SIDE}] = placeholder()
  %c: f32[{SIDE}, {SIDE}] = aten.mm.default(%a, %b)
  return (%c,)
}}
"""


def processes(context: Context) -> list[Process]:
    return [Process([*(f"step {variant}" for variant in VARIANTS), "torch eager", "torch graphs", *([] if context.is_dry else ["product"])])]


def run(context: Context, keys: Sequence[str]) -> Iterator[tuple[str, Row | None]]:
    with tempfile.TemporaryDirectory() as folder:
        yield from each_unit(keys, lambda key: unit(context, key, pathlib.Path(folder)))


def unit(context: Context, key: str, folder: pathlib.Path) -> Row:
    graph = ROOT / "testdata" / ("gpt2_flb_twin.pb.zst" if context.is_dry else "gpt2_flb.pb.zst")
    where = () if context.is_dry else ("--device", "cuda")
    what, _, variant = key.partition(" ")
    if what == "product":
        path = folder / "product.fxg"
        path.write_text(PRODUCT)
        told = run_step(context.fxopt, path, *where, "--warmup", 3, "--repeat", REPEAT)
        seconds = statistics.median(told["seconds"])
        return {"what": f"product of {SIDE} x {SIDE}, float32", "seconds": seconds, "flop_per_second": 2 * SIDE**3 / seconds}
    if what == "torch":
        return {"what": f"PyTorch, {'CUDA graphs' if variant == 'graphs' else 'eager'}", "seconds": torch_seconds(context, graph, variant)}
    path = prepared(Fxopt(context.fxopt), graph, variant, folder)
    told = run_step(context.fxopt, path, *where, "--memory", "allocator", "--warmup", 3, "--repeat", REPEAT)
    memory = told["memory"]
    row: Row = {"what": f"fxopt, {variant}", "seconds": statistics.median(told["seconds"]), "memory": memory}
    if "launch_seconds" in told:
        row["launch_seconds"] = statistics.median(told["launch_seconds"])
        row["nodes"] = steps_of(context, path)
    return row


def steps_of(context: Context, path: pathlib.Path) -> int:
    """Returns the number of nodes that a run launches."""
    return sum(each["seconds"] > 0 for each in run_step(context.fxopt, path, "--device", "cuda", "--per-node")["nodes"])


def torch_seconds(context: Context, path: pathlib.Path, how: str) -> float:
    import fxopt
    import run_step as peers
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    graph = fxopt.load(path, fxopt=context.fxopt)
    graph.graph.set_codegen(torch.fx.graph.CodeGen())  # takes the inputs one by one
    graph.recompile()
    inputs = [each.to(context.device) if isinstance(each, torch.Tensor) else each for each in peers.make_up_all(graph, str(path), context.fxopt, 1)]
    with torch.no_grad():
        return timed(context, captured(graph, inputs) if how == "graphs" and not context.is_dry else lambda: graph(*inputs))


def captured(graph: Callable[..., object], inputs: Sequence[object]) -> Callable[[], object]:
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            graph(*inputs)
    torch.cuda.current_stream().wait_stream(side)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        graph(*inputs)
    return recorded.replay


def timed(context: Context, call: Callable[[], object]) -> float:
    """Returns the median seconds of a call, on the GPU by events."""
    import torch

    found = []
    for i in range(REPEAT + 3):
        if context.is_dry:
            start = time.perf_counter()
            call()
            seconds = time.perf_counter() - start
        else:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            seconds = begin.elapsed_time(end) * 1e-3
        if i >= 3:
            found.append(seconds)
    return statistics.median(found)


def table_of(rows: Sequence[Row]) -> list[str]:
    eager = next((row["seconds"] for row in rows if row["what"] == "PyTorch, eager"), None)
    cells = []
    for row in rows:
        memory = row.get("memory", {})
        launch = f"{row['launch_seconds'] / row['nodes'] * 1e6:.2f}" if row.get("nodes") else ""
        kinds = [(memory.get(f"{kind}_peak_bytes"), memory.get(f"predicted_{kind}_bytes")) for kind in ("allocated", "reserved")]
        told = [f"{gib(measured)} ({ratio(measured, predicted)})" if measured and predicted else "" for measured, predicted in kinds]
        rate = f"{row['flop_per_second'] / 1e12:.1f} TFLOP/s" if "flop_per_second" in row else ""
        against = f"{row['seconds'] / eager:.2f}" if eager and not rate else rate
        cells.append([row["what"], f"{row['seconds'] * 1e3:.3f}", against, launch, *told, memory.get("first_difference", "")])
    heads = ["", "ms", "x eager time", "us per node launch", "allocated GiB (/ predicted)", "reserved GiB", "first difference"]
    return table(heads, cells)


STAGE = Stage("run", "GPT-2's step by `fxopt run` and PyTorch: time, launches, memory; a product", 0, 100, processes, run, table_of)
