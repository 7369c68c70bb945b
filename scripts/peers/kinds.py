#!/usr/bin/env python3
"""Graphs of 25 kinds, a few of each, as PyTorch executes them before and after pipelines, bit by bit; and their peaks by a count.

    scripts/peers/kinds.py [--fxopt PROGRAM] [--kind NAME]... [--graph NAME]... [--pipelines N] [--write FOLDER] [--notes]
                           [--every-node] [--list]

The graphs are written by hand, not drawn (differential.py draws): each has what makes its kind difficult. They are made by make_fx,
torch.export, Dynamo or AOTAutograd. Each is saved and loaded again, and goes through 13 pipelines, joint graphs also through cuts
into forward and backward. Of each run:

  - the graph afterwards is loaded and executed on the CPU with the same seed and inputs: outputs, inputs, attributes, who shares
    memory, which are one object, and the generator must be as the graph before leaves them, to the bit. Forward and backward are
    executed one after the other, new values of inputs written in between, as PyTorch's runtime does
  - `fxopt verify --against` must call it proved; what it cannot tell is counted
  - the ideal peak that `fxopt mem` tells must be, to the byte, what is counted while PyTorch executes the graph node by node, or a
    reason is given: the report itself calls it a lower bound, or PyTorch's kernel makes another storage than its trace recorded

    With --every-node the bytes at each node are compared besides, without reasons

Prints a line for each thing that is wrong: kind, graph, pipeline, what differs; with --notes also what was refused, undecided, or
has a reason. Then a table by kind. Exits with 1 when anything is wrong. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import time
import warnings

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]

from differential_parts import campaign  # noqa: E402
from fxopt import tool  # noqa: E402
from kinds_parts import (  # noqa: E402, F401
    number_graphs, memory_graphs, index_graphs, loss_graphs, layer_graphs, attention_graphs, size_graphs, program_graphs,
)  # fmt: skip
from kinds_parts.judge import Judge, Row  # noqa: E402
from kinds_parts.tracing import CASES, Case  # noqa: E402

COLUMNS = ("graphs", "runs", "changed", "refused", "undecided", "wrong", "peaks equal", "with a reason", "peaks wrong")


def table(rows: dict[str, Row]) -> str:
    total = Row()
    for row in rows.values():
        total.add(row)
    lines = [f"{'kind':20}" + "".join(f"{name:>14}" for name in COLUMNS)]
    for name, row in [*rows.items(), ("all", total)]:
        lines.append(f"{name:20}" + "".join(f"{value:14}" for value in vars(row).values()))
    return "\n".join(lines)


def asked(arguments: list[str] | None) -> tuple[argparse.Namespace, list[Case]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = list(dict.fromkeys(case.kind for case in CASES))
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    parser.add_argument(
        "--kind", action="append", choices=kinds, metavar="NAME", help=f"this kind only; repeatable: {', '.join(kinds)}"
    )
    parser.add_argument("--graph", action="append", metavar="NAME", help="this graph only; repeatable")
    parser.add_argument("--pipelines", type=int, metavar="N", help="the first N pipelines only")
    parser.add_argument("--write", type=pathlib.Path, metavar="FOLDER", help="put files of what is wrong here, before and after")
    parser.add_argument("--notes", action="store_true", help="print also what was refused, undecided, or has a reason")
    parser.add_argument("--every-node", action="store_true", help="compare the live bytes at every node, not only the peak")
    parser.add_argument("--list", action="store_true", help="print kinds and graphs, and run nothing")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if not options.kind or case.kind in options.kind]
    cases = [case for case in cases if not options.graph or case.name in options.graph]
    if not cases:
        parser.error("there is no such graph")
    return options, cases


def main(arguments: list[str] | None = None) -> int:
    options, cases = asked(arguments)
    if options.list:
        print("\n".join(f"{case.kind}: {case.name}" for case in cases))
        return 0
    program = tool.find_fxopt(options.fxopt)
    if program is None:
        print("kinds: no fxopt program: build it, then give --fxopt or set FXOPT", file=sys.stderr)
        return 2
    campaign.prepare_process()
    warnings.simplefilter("ignore")
    rows: dict[str, Row] = {}
    started, wrong = time.monotonic(), 0
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            judged = Judge(case, program, pathlib.Path(folder), options.write, options.every_node).run(options.pipelines)
        rows.setdefault(case.kind, Row()).add(judged.row)
        wrong += len(judged.lines)
        for line in judged.lines:
            print(f"WRONG {line}", flush=True)
        for line in judged.notes if options.notes else ():
            print(f"note  {line}", flush=True)
    print(f"{table(rows)}\n{wrong} wrong, {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
