"""Peaks of graphs from the caching allocator, compared with the prediction of `fxopt mem`, and the
first allocation that differs."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fxopt_program import Fxopt
from results import Row, gib, ratio, table
from stage import ROOT, Context, Process, Stage, each_unit, profile_of_card

FOLDER = ROOT / "testdata" / "gpu"
# Traced by scripts/traces/joint_models.py. The cheapest to run first.
GRAPHS = (
    "bert", "llama", "vit", "unet", "mixtral", "whisper", "qwen2", "convnext", "t5", "swin", "mixer", "efficientnet",
)  # fmt: skip
VARIANTS = {
    "none": "",
    "per-op": "canonicalize,cse,sac,remat,dce",
    "full": "canonicalize,cse,sac{policy=full},remat,dce",
}
SEGMENTS = {"classic": "expandable_segments:False", "expandable": "expandable_segments:True"}
STEPS = 3


def processes(context: Context) -> list[Process]:
    """Returns one process for each kind of segments, with all graphs."""
    units = [f"{graph} {variant}" for graph in GRAPHS for variant in VARIANTS]
    return [
        Process([f"{segments} {unit}" for unit in units], {"PYTORCH_ALLOC_CONF": setting})
        for segments, setting in SEGMENTS.items()
    ]


def profile(context: Context) -> str | None:
    """Returns the device profile for predictions, from the card, if known, and the version of
    torch. None for a dry run, which counts and predicts results only."""
    import torch

    if context.is_dry:
        return None
    card = profile_of_card(torch.cuda.get_device_name(0))
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return ",".join(filter(None, [card, "torch-2.11" if version < (2, 15) else "torch-2.15"]))


@dataclass(frozen=True)
class Ready:
    """A graph after the work that needs no device: optimizing, reading and predicting."""

    module: dict[str, object]
    predicted: dict[str, int]


def run(context: Context, keys: Sequence[str]) -> Iterator[tuple[str, Row | None]]:
    """Runs the units. The program prepares graphs in threads while others are measured."""
    fxopt, device = Fxopt(context.fxopt), profile(context)
    os.environ["FXOPT"] = context.fxopt
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(4) as pool:
        ready = {key: pool.submit(make_ready, context, fxopt, device, key, pathlib.Path(folder)) for key in keys}
        yield from each_unit(keys, lambda key: unit(context, key, device, ready.pop(key).result()))


def source_of(fxopt: Fxopt, name: str, variant: str, is_small: bool, folder: pathlib.Path) -> pathlib.Path:
    """Returns the path of a graph of testdata, or the path in `folder` of the graph after the
    variant's passes."""
    path = FOLDER / f"{name}_joint{'_small' if is_small else ''}.pb.zst"
    if not VARIANTS[variant]:
        return path
    optimized = folder / f"{name}_{variant}.pb"
    fxopt.opt(path, optimized, VARIANTS[variant], "--no-reproducer")
    return optimized


def make_ready(context: Context, fxopt: Fxopt, device: str | None, key: str, folder: pathlib.Path) -> Ready:
    from fxopt import bridge

    segments, name, variant = key.split()
    path = source_of(fxopt, name, variant, context.is_dry, folder)
    (peaks,) = fxopt.allocator_peaks(path, {}, device).values()
    return Ready(bridge.read_module(path, fxopt.program), peaks[segments])


def unit(context: Context, key: str, device: str | None, ready: Ready) -> Row:
    import memory_runs
    from cuda_meter import CudaMeter

    segments, name, variant = key.split()
    subject = memory_runs.subject_of(ready.module)
    row: Row = {"graph": name, "variant": variant, "segments": segments, "profile": device, "predicted": ready.predicted}
    row["measured"] = memory_runs.measure(subject, 1 if context.is_dry else STEPS, context.is_dry)
    if not context.is_dry and CudaMeter(subject.device).is_expandable() != (segments == "expandable"):
        raise RuntimeError(f"the allocator does not use {segments} segments")
    if subject.remarks:
        row["remarks"] = subject.remarks
    if segments == "classic":
        billed = memory_runs.bill(subject, context.is_dry)
        row["first_difference"] = billed["first_difference"]
        row["first_difference_of_results"] = billed["first_difference_of_results"]
        for part in ("operators", "once"):
            row[part] = {target: found["peak_bytes"] for target, found in billed[part].items()}
    return row


def rows_of(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yields cells of the table. They show the first step, the peak of a job that fails at its
    start."""
    order = {key: place for place, key in enumerate((graph, variant) for graph in GRAPHS for variant in VARIANTS)}
    for row in sorted(rows, key=lambda row: (order[row["graph"], row["variant"]], row["segments"])):
        measured, predicted = row["measured"]["1"], row["predicted"]
        cells = [row["graph"], row["variant"], row["segments"]]
        for kind in ("allocated", "reserved") if "allocated" in measured else ("requested",):
            cells += [gib(predicted[kind]), gib(measured[kind]), ratio(measured[kind], predicted[kind])]
        yield cells


def table_of(rows: Sequence[Row]) -> list[str]:
    cells = list(rows_of(rows))
    kinds = ["allocated", "reserved"] if len(cells[0]) > 6 else ["requested"]
    heads = ["graph", "remat", "segments"]
    heads += [f"{kind}, {what}" if what else "ratio" for kind in kinds for what in ("predicted GiB", "measured", "")]
    lines = table(heads, cells)
    billed = [row for row in rows if "first_difference" in row]
    lines += ["", f"billed allocation by allocation: {len(billed)}"]
    for kind, text in (("first_difference_of_results", "results"), ("first_difference", "first difference")):
        lines += [f"{text}: {row['graph']} {row['variant']}: {row[kind]}" for row in billed if row[kind]]
    return lines + workspaces(billed, "operators", "besides results") + workspaces(billed, "once", "first call only")


def workspaces(billed: Sequence[Row], part: str, text: str) -> list[str]:
    """Returns the most memory that each operator allocated besides its results: the lines
    `workspace` and `persistent` of a profile."""
    most: dict[str, int] = {}
    for row in billed:
        for target, size in row[part].items():
            most[target] = max(size, most.get(target, 0))
    return [f"{text}: {target}: {size} bytes at most" for target, size in sorted(most.items())]


STAGE = Stage("memory", "peaks of 12 graphs x none, per-op, full, compared with `fxopt mem`", 1, 240, processes, run, table_of)
