#!/usr/bin/env python3
"""Executes graphs of 25 kinds before and after pipelines, bit by bit, and checks their ideal peaks.

    scripts/peers/kinds.py [--fxopt PROGRAM] [--kind NAME]... [--graph NAME]... [--pipelines N]
                           [--write FOLDER] [--notes] [--every-node] [--list]

The graphs are written by hand, not drawn as in differential.py: each has the difficulties of its
kind. They are made by make_fx, torch.export, Dynamo or AOTAutograd. Each is saved, loaded again,
and put through 13 pipelines; joint graphs are also cut into forward and backward. Each run is
checked so:

  - The output graph is loaded and executed on the CPU with the same seed and inputs. Outputs,
    inputs, attributes, shared memory, object identity and the generator must equal those of the
    input graph, bit by bit. Forward and backward are executed one after the other, with new values
    of inputs written in between, as PyTorch's runtime does.
  - `fxopt verify --against` must report it as proved; undecided runs are counted.
  - The ideal peak of `fxopt mem` must be, to the byte, the peak counted while PyTorch executes the
    graph node by node. Otherwise a reason is printed: the report calls the peak a lower bound, or
    PyTorch's kernel makes another storage than its trace recorded.

--every-node also compares the bytes at each node, without reasons.

Prints a line for each error: kind, graph, pipeline, difference. --notes adds refused and undecided
runs, and reasons. Then prints a table by kind. Exits with 1 if anything is wrong. Needs torch; no
GPU.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import time
import warnings

from command import command_line, program_of
from differential_parts import campaign
from kinds_parts import (  # noqa: F401
    number_graphs, memory_graphs, index_graphs, loss_graphs, layer_graphs, attention_graphs, size_graphs, program_graphs,
)  # fmt: skip
from kinds_parts.judge import Judge, Row
from kinds_parts.tracing import CASES, Case

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
    parser = command_line(__doc__)
    kinds = list(dict.fromkeys(case.kind for case in CASES))
    parser.add_argument(
        "--kind", action="append", choices=kinds, metavar="NAME", help=f"this kind only; repeatable: {', '.join(kinds)}"
    )
    parser.add_argument("--graph", action="append", metavar="NAME", help="this graph only; repeatable")
    parser.add_argument("--pipelines", type=int, metavar="N", help="the first N pipelines only")
    parser.add_argument("--write", type=pathlib.Path, metavar="FOLDER", help="write files of errors here, before and after")
    parser.add_argument("--notes", action="store_true", help="also print refused and undecided runs, and reasons")
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
    program = program_of(options)
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
