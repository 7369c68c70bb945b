#!/usr/bin/env python3
"""Runs PyTorch's operator database through fxopt: saves, verifies, optimizes, loads and executes.

    scripts/peers/op_db.py [--fxopt PROGRAM] [--samples N] [--jobs N] [--part I/N] [NAME...]

NAME is an entry of op_db, such as nn.functional.conv1d (default: all entries). For each entry and
each of two dtypes, N samples are traced in four forms: forward, forward and gradients, called twice with an in-place
write between, and with symbolic sizes. Each graph is written once and verified. Three pipelines
optimize and prove it; `verify` checks every result, and `verify --against` a third. The results are
loaded and executed by PyTorch on the sample's tensors, beside the graph before: values, dtypes,
strides of results with elements, storages and offsets of inputs and results, written inputs, the structure of the result
and the state of the generator must be equal. Symbolic traces are also executed at two other sizes
that their guards allow.

The peak that `mem` states is compared with the live bytes of the execution.

The last lines count, with the first graph of each kind: graphs, graphs that could not be traced or
executed, refused by save, opaque operators, errors of verify and opt, proofs that are undecided or
stale, and wrong results. Exits with 1 if a graph is refused, a registered operator is opaque, a
command fails, or a result is wrong. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]

import torch  # noqa: E402
from fxopt import bridge, form, tool  # noqa: E402
from fxopt.writer import Exporter  # noqa: E402
from live_bytes import Counted  # noqa: E402
from op_run import address, content_of, copy_of  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

DTYPES = (torch.float32, torch.complex64)  # an entry without both: its first dtype
PIPELINES = (
    "canonicalize,cse,dce",
    "infer-phase,canonicalize,cse,remat,dce",
    "infer-phase,canonicalize,cse,sac{policy=full},remat,dce",
)


class Tally:
    """Counts by kind, with the first example of each kind."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.examples: dict[str, str] = {}

    def add(self, kind: str, example: str = "", count: int = 1) -> None:
        self.counts[kind] += count
        self.examples.setdefault(kind, example)

    def merge(self, other: Tally) -> None:
        self.counts.update(other.counts)
        for kind, example in other.examples.items():
            self.examples.setdefault(kind, example)


# ---- programs


def _forms(op: Any, sample: Any) -> Iterator[tuple[str, Callable, list[torch.Tensor], str]]:
    """Programs of one sample: name, function of the tensors, tensors, tracing mode."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[i].detach().requires_grad_(leaves[i].requires_grad) for i in places]

    def call(given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        filled = list(leaves)
        for place, tensor in zip(places, given, strict=True):
            filled[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        found = pytree.tree_leaves(op.op(first, *args, **kwargs))
        return [leaf for leaf in found if isinstance(leaf, torch.Tensor)]

    def forward(*given: torch.Tensor) -> list[torch.Tensor]:
        with torch.no_grad():
            return call(given)

    def gradients(*given: torch.Tensor) -> list[torch.Tensor]:
        given = tuple(tensor.requires_grad_() if tensor.requires_grad else tensor for tensor in given)
        results = call(given)
        sums = [result.abs().sum() for result in results if result.requires_grad]
        wanted = [tensor for tensor in given if tensor.requires_grad]
        found = torch.autograd.grad(sum(sums), wanted, allow_unused=True)
        return [*results, *(gradient for gradient in found if gradient is not None)]

    def twice(*given: torch.Tensor) -> list[torch.Tensor]:
        with torch.no_grad():
            before = call(given)  # views of the input see the write
            given[0].neg_() if given[0].dtype is not torch.bool else given[0].logical_not_()
            return [*before, *call(given)]

    yield "forward", forward, tensors, "fake"
    if any(tensor.requires_grad for tensor in tensors):
        yield "gradients", gradients, tensors, "fake"
    if tensors:
        yield "twice", twice, tensors, "fake"
    yield "symbolic", forward, tensors, "symbolic"


def programs_of(op: Any, samples: int, tally: Tally) -> Iterator[tuple[str, torch.fx.GraphModule, list[torch.Tensor]]]:
    if not op.dtypes:
        return tally.add("no kernel on the CPU", op.full_name)
    dtypes = [dtype for dtype in DTYPES if dtype in op.dtypes] or sorted(op.dtypes, key=str)[:1]
    found = [(dtype, number, sample) for dtype in dtypes for number, sample in enumerate(_samples(op, dtype, samples, tally))]
    for dtype, number, sample in found:
        for name, function, tensors, mode in _forms(op, sample):
            label = f"{op.full_name}[{str(dtype).removeprefix('torch.')} {number}] {name}"
            try:
                torch.manual_seed(0)
                copies = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors]
                yield label, make_fx(function, tracing_mode=mode)(*copies), tensors
            except Exception as error:  # the operator has no fake or symbolic kernel, or reads data
                tally.add(
                    f"not traced, {name}", f"{label}: {str(error).splitlines()[0][:80] if str(error) else type(error).__name__}"
                )


def _samples(op: Any, dtype: torch.dtype, count: int, tally: Tally) -> list[Any]:
    with_gradients = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    try:
        return list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=with_gradients), count))
    except Exception as error:  # a sample that needs a missing package or device
        tally.add("no sample", f"{op.full_name}: {str(error)[:80]}")
        return []


# ---- other sizes


def resized(graph_module: torch.fx.GraphModule, tensors: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Tensors of up to two other sizes that satisfy the guards of a symbolic trace."""
    values = [node.meta.get("val") for node in graph_module.graph.find_nodes(op="placeholder")]
    sizes = [size for value in values if isinstance(value, torch.Tensor) for size in (*value.shape, *value.stride())]
    env = next((size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)), None)
    if env is None or len(values) != len(tensors):
        return
    hints = {symbol: int(hint) for symbol, hint in env.backed_var_to_val.items()}
    found = 0
    for change in (lambda n: n + 1, lambda n: 2 * n, lambda n: n + 2, lambda n: 3 * n, lambda n: n + 4):
        changed = {symbol: change(hint) for symbol, hint in hints.items()}

        def number(size: Any, changed: dict[Any, int] = changed) -> int:
            return int(size.node.expr.subs(changed)) if isinstance(size, torch.SymInt) else size

        if changed == hints or not all(guard.expr.subs(changed) == True for guard in env.guards):  # noqa: E712
            continue
        yield [_stretched(tensor, value, number) for tensor, value in zip(tensors, values, strict=True)]
        found += 1
        if found == 2:
            return


def _stretched(tensor: torch.Tensor, value: torch.Tensor, number: Callable[[Any], int]) -> torch.Tensor:
    """The tensor's elements, repeated to the value's sizes. Indices stay valid."""
    sizes, strides = [number(size) for size in value.shape], [number(size) for size in value.stride()]
    result = torch.empty_strided(sizes, strides, dtype=tensor.dtype)
    if result.numel() and tensor.numel():
        flat = tensor.detach().flatten()
        result.copy_(flat[torch.arange(result.numel()) % flat.numel()].view(sizes))
    else:
        result.zero_()
    return result


# ---- execution


def observe(graph_module: torch.fx.GraphModule, tensors: Sequence[torch.Tensor]) -> list[Any]:
    """Runs a graph on copies of the tensors. Returns the structure of the result, the state of the
    generator, and values, dtypes, strides and storages of inputs and results."""
    torch.manual_seed(0)
    with torch.no_grad():
        given = _copies(tensors)
        output = graph_module(*given)
    leaves, structure = pytree.tree_flatten(output)
    storages: dict[int, int] = {}
    seen: list[Any] = [str(structure), torch.get_rng_state().numpy().tobytes()]
    for value in (*given, *leaves):
        if not isinstance(value, torch.Tensor):
            seen.append(value)
            continue
        is_plain = value.layout is torch.strided and value.numel() > 0 and not value._is_zerotensor()
        place = None
        if is_plain:
            alias = storages.setdefault(address(value), len(storages))
            strides = tuple(s for s, n in zip(value.stride(), value.shape, strict=True) if n > 1)
            place = alias, value.storage_offset(), strides
        seen.append((value.dtype, tuple(value.shape), place, _bits(value)))
    return seen


def _copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies with the same strides, on storages of the same size that are shared in the same way."""
    storages: dict[int, torch.UntypedStorage] = {}
    return [copy_of(each, storages) if each.layout is torch.strided else each.detach().clone() for each in tensors]


def _bits(value: torch.Tensor) -> bytes:
    plain = value.detach().to_dense() if value.layout is not torch.strided else value.detach()
    return content_of(plain.clone() if plain._is_zerotensor() else plain)


# ---- the program


class Program:
    def __init__(self, fxopt: str, folder: pathlib.Path) -> None:
        self.fxopt = fxopt
        self.folder = folder

    def run(self, *arguments: str) -> list[dict]:
        """The rows of the files in the JSON envelope of a call."""
        done = subprocess.run([self.fxopt, *arguments, "--json"], capture_output=True, text=True)
        return json.loads(done.stdout)["result"].get("files", [])


def check_entry(name: str, variant: str, fxopt: str, samples: int) -> Tally:
    """Everything about one entry of the database."""
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    op = next(each for each in op_db if each.name == name and each.variant_test_name == variant)
    tally = Tally()
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        program = Program(fxopt, folder)
        graphs: dict[str, tuple[str, torch.fx.GraphModule, list[torch.Tensor]]] = {}
        for label, graph_module, tensors in programs_of(op, samples, tally):
            tally.add("graphs")
            file = f"g{len(graphs)}.json"
            try:
                form.write_json(Exporter(folder / file).module(graph_module), folder / file)
            except Exception as error:
                is_known = "a file can hold only strided" in str(error)  # a documented limit
                tally.add("refused: sparse" if is_known else "WRONG: refused by save", f"{label}: {str(error)[:160]}")
                continue
            graphs[file] = (label, graph_module, tensors)
        if graphs:
            _check_graphs(program, graphs, tally)
    return tally


def _check_graphs(program: Program, graphs: dict[str, Any], tally: Tally) -> None:
    files = [str(program.folder / file) for file in graphs]
    for file, row in zip(graphs, program.run("verify", *files), strict=True):
        if row["verdict"] != "ok":
            tally.add("WRONG: verify", f"{graphs[file][0]}: {row['verdict']}")
        for opaque in row.get("opaque", ()):
            is_wrong = opaque["why"].startswith("an op that neither")
            tally.add(f"{'WRONG: ' if is_wrong else ''}opaque: {opaque['why']}", f"{graphs[file][0]}: {opaque['what']}")
    for file, row in zip(graphs, program.run("mem", *files), strict=True):
        _check_peak(row, *graphs[file], tally)
    for number, passes in enumerate(PIPELINES):
        out = program.folder / f"out{number}"
        out.mkdir()
        program.run("opt", *files, "-o", f"{out}/", "--format", "json", "--passes", passes, "--no-reproducer")
        written = [file for file in graphs if (out / file).exists()]
        for file in graphs.keys() - set(written):
            tally.add("WRONG: opt", f"{graphs[file][0]}: {passes}")
        rows = program.run("verify", *(str(out / file) for file in written)) if written else []
        for place, (file, row) in enumerate(zip(written, rows, strict=True)):
            label = f"{graphs[file][0]}, {passes}"
            if row["verdict"] != "ok" or row.get("certificate", {}).get("fits") is False:
                tally.add("WRONG: verify of the result", f"{label}: {row['verdict']}")
            if place % len(PIPELINES) == number:
                (row,) = program.run("verify", str(out / file), "--against", str(program.folder / file))
                is_proved = row.get("proof") == "proved"
                tally.add("proved against the file before" if is_proved else f"WRONG: proof {row.get('proof')}", label)
            _check_result(out / file, label, *graphs[file][1:], tally)


def _check_peak(row: dict, label: str, graph_module: torch.fx.GraphModule, tensors: list[torch.Tensor], tally: Tally) -> None:
    """Compares the peak that `mem` states with the live bytes of an execution."""
    counted = Counted(graph_module)
    try:
        with torch.no_grad():
            torch.manual_seed(0)
            counted(*(tensor.detach().clone() for tensor in tensors))  # as they were traced
    except Exception as error:
        return tally.add("peak not counted", f"{label}: {str(error)[:80]}")
    (memory,) = row["graphs"]
    stated = sum(device["ideal"]["peak_bytes"] for device in memory["devices"])
    is_bound = memory["unknown_storages"] > 0 and stated <= counted.peak
    kind = "equal" if stated == counted.peak else "a lower bound" if is_bound else "differs"
    if kind == "differs":
        kind += f" ({label.split('[')[0]})"
    tally.add(f"peak: {kind}", f"{label}: {stated} for {counted.peak}" if kind.startswith("differs") else "")


def _check_result(
    path: pathlib.Path, label: str, graph_module: torch.fx.GraphModule, tensors: list[torch.Tensor], tally: Tally
) -> None:
    if "empty" in label.split("[")[0]:
        return tally.add("not executed: memory that nothing wrote", label)
    try:
        loaded = bridge.load(path)
    except Exception as error:
        return tally.add("WRONG: load", f"{label}: {str(error)[:160]}")
    _compare("executed", label, graph_module, loaded, tensors, tally)
    if " symbolic" in label:
        for others in resized(graph_module, tensors):
            _compare("executed at other sizes", label, graph_module, loaded, others, tally)


def _compare(
    kind: str, label: str, before: torch.fx.GraphModule, after: torch.fx.GraphModule, tensors: list[torch.Tensor], tally: Tally
) -> None:
    try:
        expected = observe(before, tensors)
        if observe(before, tensors) != expected:
            return tally.add(f"not {kind}: differs from itself", label)
    except Exception as error:  # for example, an operator without a CPU kernel
        return tally.add(f"not {kind}", f"{label}: {str(error)[:80]}")
    try:
        found = observe(after, tensors)
    except Exception as error:
        return tally.add(f"WRONG: {kind}, error", f"{label}: {str(error)[:160]}")
    tally.add(kind)
    if found != expected:
        tally.add(f"WRONG: {kind}", label)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries (default: all)")
    parser.add_argument("--fxopt", help="the program (default: FXOPT, or fxopt on PATH)")
    parser.add_argument("--samples", type=int, default=5, metavar="N", help="samples of each entry (default: 5)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="only every Nth entry, from the Ith on")
    options = parser.parse_args()
    from torch.testing._internal.common_methods_invocations import op_db

    fxopt = tool.require_fxopt(options.fxopt, "run the operator database")
    first, step = map(int, options.part.split("/"))
    entries = [(op.name, op.variant_test_name) for op in op_db if not options.names or op.name in options.names][first::step]
    total = Tally()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        running = {pool.submit(check_entry, *entry, fxopt, options.samples): entry for entry in entries}
        for done in concurrent.futures.as_completed(running):
            try:
                total.merge(done.result())
            except Exception as error:
                total.add("WRONG: the checker", f"{running[done][0]}: {type(error).__name__}: {str(error)[:120]}")
    print(f"{len(entries)} entries of op_db")
    for kind, count in sorted(total.counts.items()):
        print(f"{count:7d}  {kind}" + (f"  ({total.examples[kind]})" if total.examples[kind] else ""))
    return int(any(kind.startswith("WRONG") for kind in total.counts))


if __name__ == "__main__":
    sys.exit(main())
