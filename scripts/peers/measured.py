#!/usr/bin/env python3
"""Prints peaks that `fxopt mem` predicts now beside peaks measured on a GPU.

    scripts/peers/measured.py [--fxopt PROGRAM] [FILE...]

FILE: results of scripts/gpu_check.sh (default: all of testdata/measured). Prints the table of
cli/topics/memory.md: for each graph of testdata/gpu, the allocated bytes of the first training
step without expandable segments, as traced and after two policies of `sac`, predicted with the
profiles h100 and torch-2.11. Measured values are beside them, "not measured" if no file has them.
Then prints a line for each measured peak, for both kinds of segments, with the ratio, and the
stages llama1b and profile as gpu_check prints them. Needs no torch, no GPU.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
from collections.abc import Iterator, Sequence

from command import ROOT, command_line
from fxopt_program import Fxopt

sys.path.insert(0, str(ROOT / "scripts" / "gpu_check"))
from results import Results, Row, gib, ratio, table
from stage import all_stages
from stages import memory

PROFILE = "h100,torch-2.11"
NOT_MEASURED = "not measured"


def predictions(fxopt: Fxopt) -> dict[tuple[str, str], dict[str, dict[str, int]]]:
    """By graph and variant: kinds of segments, kinds of peaks, bytes."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for graph in memory.GRAPHS:
            for variant in memory.VARIANTS:
                path = memory.source_of(fxopt, graph, variant, False, pathlib.Path(folder))
                (found[graph, variant],) = fxopt.allocator_peaks(path, {}, PROFILE).values()
    return found


def readme_table(predicted: dict[tuple[str, str], dict[str, dict[str, int]]], rows: Sequence[Row]) -> list[str]:
    measured = {(row["graph"], row["variant"]): row["measured"]["1"]["allocated"] for row in rows if row["segments"] == "classic"}
    heads = ["graph"]
    for variant in memory.VARIANTS:
        heads += [f"{variant}, GiB", "measured"]
    cells = []
    for graph in memory.GRAPHS:
        line = [graph]
        for variant in memory.VARIANTS:
            size = measured.get((graph, variant))
            line += [gib(predicted[graph, variant]["classic"]["allocated"]), NOT_MEASURED if size is None else gib(size)]
        cells.append(line)
    return table(heads, cells)


def compared(predicted: dict[tuple[str, str], dict[str, dict[str, int]]], rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        for kind in ("allocated", "reserved"):
            there = row["measured"]["1"][kind]
            here = predicted[row["graph"], row["variant"]][row["segments"]][kind]
            yield (
                f"{row['machine']['card']}: {row['graph']} {row['variant']}, {row['segments']}, {kind}: predicted {here}, "
                f"measured {there}, {ratio(there, here)}"
            )


def main(arguments: list[str] | None = None) -> int:
    parser = command_line(__doc__)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        files = [Results(path) for path in options.files or sorted((ROOT / "testdata" / "measured").glob("*.json"))]
        predicted = predictions(Fxopt(options.fxopt))
    except (OSError, RuntimeError, ValueError) as error:
        print(f"measured: {error}", file=sys.stderr)
        return 1
    rows = [row for file in files for row in file.rows if "error" not in row and row["machine"]["card"] != "no GPU"]
    peaks = [row for row in rows if row["stage"] == "memory"]
    print("\n".join([*readme_table(predicted, peaks), "", *compared(predicted, peaks)]))
    for stage in all_stages():
        machines = {str(row["machine"]): row["machine"] for row in rows if row["stage"] == stage.name and stage.name != "memory"}
        for machine in machines.values():
            of = [row for row in rows if row["stage"] == stage.name and row["machine"] == machine]
            print("\n".join(["", f"{stage.name}, {machine['card']}, torch {machine['torch']}", "", *stage.table(of)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
