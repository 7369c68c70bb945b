#!/usr/bin/env python3
"""Executes calls of operators on the CPU and records their effects.

The effects: which outputs share memory with which argument or are that argument, and which
arguments are written, resized, moved, drawn, or read.

    scripts/peers/op_facts.py [-o tests/ir/data/op_facts.fxg.zst] [--fxopt PROGRAM] [--only NAME]

The calls are those of the samples of PyTorch's OpInfo database, their in-place and out variants,
variations of flags, dtypes, sizes and strides, and some by hand, for the operators in ir/ops/*.inc.
Each call is one graph: placeholders without storages, the call with its facts as metadata
`executed`, the output. tests/ir/ops/op_facts_test.cpp compares the op table with them. The same
torch gives the same file.

Needs torch and expecttest (which OpInfo imports).
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import mmap
import operator
import os
import pathlib
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from command import ROOT, command_line, program_of
import numpy
import torch

from op_calls import CallBook, add_families, add_made_up, add_opinfo, add_variations
from op_calls_by_hand import add_by_hand, start_group
from op_run import Call, Facts, is_ordinary, observe, shape_of

SECONDS = 5  # limit for one call with all its repetitions

Seen = tuple[Facts, str]  # the facts and the text of the graph, without its name


def table_names() -> list[str]:
    """Targets of the op table."""
    rows = [(ROOT / "ir/ops" / f"{name}.inc").read_text() for name in ("aten", "libraries", "extra")]
    return sorted(set(re.findall(r'^\{"([^"]+)"', "\n".join(rows), re.MULTILINE)))


# ---- text

_DTYPES = {"bool": "b8", "bfloat16": "bf16", "complex32": "c32", "complex64": "c64", "complex128": "c128"}


def dtype_text(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if name in _DTYPES:
        return _DTYPES[name]
    if found := re.fullmatch(r"(u?)int(\d+)|float(\d+)(?:_(\w+))?", name):
        return f"{'u' if found[1] else 'i'}{found[2]}" if found[2] else f"f{found[3]}{found[4] or ''}"
    raise ValueError(f"no word for {dtype}")


def _dims(values: Any) -> str:
    return ", ".join(map(str, values))


def type_text(value: Any) -> str:
    """The recorded value; "" if it has none."""
    if isinstance(value, torch.Tensor):
        if not is_ordinary(value):
            raise ValueError("no dense tensor of the CPU")
        flags = ", ".join(["conjugate"] * value.is_conj() + ["negative"] * value.is_neg())
        offset = f"+{value.storage_offset()}" if value.storage_offset() else ""
        return f"{dtype_text(value.dtype)}[{_dims(value.size())}]({_dims(value.stride())}){offset}" + (f"{{{flags}}}" if flags else "")
    if isinstance(value, tuple | list):
        inner = ", ".join(type_text(x) or "_" for x in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {type_text(x) or '_'}" for key, x in value.items()) + "}"
    return "None" if value is None else ""


def arg_text(value: Any, names: Iterator[str]) -> str:
    """An argument as text; each tensor takes the next name."""
    if isinstance(value, torch.Tensor):
        return "%" + next(names)
    if value is None or isinstance(value, bool | int):
        return str(value)
    if value is ...:
        return "..."
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, complex):
        return f"complex({arg_text(value.real, names)}, {arg_text(value.imag, names)})"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, slice):
        return f"slice({', '.join(arg_text(x, names) for x in (value.start, value.stop, value.step))})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {arg_text(x, names)}" for k, x in value.items()) + "}"
    if isinstance(value, tuple | list):
        inner = ", ".join(arg_text(x, names) for x in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    return _enum_text(value)


def _enum_text(value: Any) -> str:
    name = str(value).removeprefix("torch.")
    if isinstance(value, torch.dtype):
        return f"dtype({dtype_text(value)})"
    if isinstance(value, torch.memory_format):
        return f"memory_format({name.removesuffix('_format')})"
    if isinstance(value, torch.layout):
        return f"layout({name})"
    if isinstance(value, torch.device):
        return f'device("{value}")'
    raise ValueError(f"no text for {value!r}")


def graph_text(name: str, call: Call, result: Any, facts: Facts) -> str:
    """The body of a graph with this one call."""
    args, kwargs = call.arguments()
    if call.target is operator.getitem and not isinstance(args[0], torch.Tensor):
        inputs, given = [args[0]], ["%a0", *(arg_text(x, iter(())) for x in args[1:])]
    else:
        inputs = call.tensors()
        names = iter([f"a{i}" for i in range(len(inputs))])
        given = [arg_text(x, names) for x in args] + [f"{key}={arg_text(x, names)}" for key, x in kwargs.items()]
    lines = [f"  %a{i}: {type_text(value)} = placeholder()" for i, value in enumerate(inputs)]
    recorded = type_text(result)
    recorded = f": {recorded}" if recorded else ""
    lines.append(f'  %call{recorded} = {name}({", ".join(given)}) {{meta={{"executed": "{facts}"}}}}')
    return "\n".join([*lines, "  return %call"])


# ---- execution, each overload in a process that may crash


def _observe_all(name: str, calls: Iterable[Call]) -> list[Seen]:
    seen: dict[Any, tuple[int, Seen]] = {}
    for call in calls:
        try:
            facts, outcome = observe(call)
            text = graph_text(name, call, outcome.result, facts)
        except Exception:  # the operator does not take such a call
            continue
        key = _class_of(call, facts, outcome.outputs)
        if key not in seen or len(facts.reads) > seen[key][0]:
            seen[key] = (len(facts.reads), (facts, text))
    return [item for _, item in seen.values()]


def _class_of(call: Call, facts: Facts, outputs: list[Any]) -> Any:
    """The class of a call; one call per class is kept. If nothing is shared, moved or resized, the
    facts alone, without reads, make the class."""
    effects = (facts.shares, facts.same, facts.joined, facts.writes, facts.bumps, facts.resizes, facts.moves, facts.draws)
    if call.target is operator.getitem:
        return effects, str(call.spec), tuple(_kind_of_index(leaf) for leaf in call.leaves[1:])
    if not any((facts.shares, facts.joined, facts.resizes, facts.moves)):
        return effects
    tensors = call.tensors()
    alike = [isinstance(x, torch.Tensor) and shape_of(x) == shape_of(tensors[0]) for x in outputs[:2]] if tensors else []
    lies = [(t.is_contiguous(), t.numel() == 0, t.dim() == 0, t.is_complex(), t.is_conj(), t.is_neg()) for t in tensors[:3]]
    plain = tuple(leaf for leaf in call.leaves if isinstance(leaf, bool) or leaf is None)
    return effects, facts.reads, tuple(alike), tuple(lies), plain


def _kind_of_index(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return str(leaf.dtype), leaf.dim()
    return type(leaf).__name__


class Stage:
    """Runs the calls of many overloads in child processes. A call that kills or blocks its process
    is left out."""

    def __init__(self, book: CallBook, names: list[str]) -> None:
        self.calls = {name: book.of(name) for name in names}
        self.seen: dict[str, list[Seen]] = {}
        self.deadly: collections.Counter[str] = collections.Counter()
        self.at = mmap.mmap(-1, 8)  # the current call, seen by both processes

    def run(self) -> None:
        waiting = collections.deque(self.calls)
        while waiting:
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(read)
                self._serve(list(waiting), write)
            os.close(write)
            self._collect(waiting, read)
            os.waitpid(child, 0)
            if waiting:
                self.deadly[waiting[0]] += 1
                del self.calls[waiting[0]][int.from_bytes(self.at[:8], "little")]

    def _serve(self, names: list[str], write: int) -> None:
        try:
            with open(os.devnull, "w") as null, os.fdopen(write, "wb") as out:
                os.dup2(null.fileno(), 1)
                os.dup2(null.fileno(), 2)
                for name in names:
                    pickle.dump((name, _observe_all(name, self._one_by_one(name))), out)
                    out.flush()
        finally:
            os._exit(0)

    def _one_by_one(self, name: str) -> Iterator[Call]:
        if name.startswith("_c10d_functional."):
            start_group()
        for i, call in enumerate(self.calls[name]):
            self.at[:8] = i.to_bytes(8, "little")
            signal.alarm(SECONDS)
            yield call
        signal.alarm(0)

    def _collect(self, waiting: collections.deque[str], read: int) -> None:
        with os.fdopen(read, "rb") as data:
            while waiting:
                try:
                    name, seen = pickle.load(data)
                except EOFError:
                    return
                self.seen[name] = seen
                waiting.popleft()


def make_repeatable() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)  # also fills uninitialized memory
    for seed in (torch.manual_seed, random.seed, numpy.random.seed):
        seed(0)


def fill(book: CallBook, table: list[str]) -> int:
    add_by_hand(book)
    operators = add_opinfo(book)
    add_families(book, table)
    add_made_up(book, table)
    add_variations(book)
    return operators


def write(path: pathlib.Path, graphs: list[str], fxopt: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "op_facts.fxg"
        text.write_text("fxg 0\n" + "".join(graphs))
        subprocess.run([fxopt, "convert", str(text), "-o", str(path)], check=True)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "tests/ir/data/op_facts.fxg.zst", help="default: %(default)s")
    parser.add_argument("--only", help="only targets that match this regular expression; prints their facts")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    make_repeatable()
    fxopt = program_of(args)
    table, book = table_names(), CallBook()
    with torch.no_grad():
        operators = fill(book, table)
        known = [name for name in sorted(book.calls) if name in set(table) and re.search(args.only or "", name)]
        stage = Stage(book, known)
        stage.run()
    return report(args, operators, table, book, stage, fxopt)


def report(args: argparse.Namespace, operators: int, table: list[str], book: CallBook, stage: Stage, fxopt: str) -> int:
    graphs = [f"graph @\"{name}/{i}\" {{\n{text}\n}}\n" for name in sorted(stage.seen) for i, (_, text) in enumerate(stage.seen[name])]
    if args.only:
        print("\n".join(f"{name}: {facts}" for name in sorted(stage.seen) for facts, _ in stage.seen[name]))
        return 0
    write(args.output, graphs, fxopt)
    executed = [name for name, seen in stage.seen.items() if seen]
    print(f"operators of OpInfo          {operators}")
    print(f"overloads called             {len(book.calls)}, of which {len(set(book.calls) - set(table))} are not in the op table")
    print(f"calls tried                  {sum(len(book.of(name)) for name in book.calls)}")
    print(f"overloads of the table       {len(table)}, executed {len(executed)}")
    print(f"calls that killed a process  {sum(stage.deadly.values())}, of {len(stage.deadly)} overloads")
    print(f"graphs kept                  {len(graphs)}, {args.output.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
