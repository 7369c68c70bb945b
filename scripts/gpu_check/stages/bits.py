"""Steps of GPT-2 by `fxopt run --device cuda`: bits compared with the CPU's, and allocator events
compared with the prediction of `fxopt mem`."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Iterator, Sequence

from fxopt_program import Fxopt
from results import Row, table
from stage import ROOT, Context, Process, Stage, each_unit
from step_runs import prepared, run_step

GRAPHS = ("gpt2_flb_twin", "gpt2_joint_twin", "gpt2_flb")
# With full recompute the full-size step fits any card, and a CPU.
WAYS = {"arena": (), "4 streams": ("--streams", "4"), "allocator": ("--memory", "allocator")}


def processes(context: Context) -> list[Process]:
    graphs = GRAPHS[:2] if context.is_dry else GRAPHS
    return [Process([f"{graph} {way}" for graph in graphs for way in WAYS])]


def run(context: Context, keys: Sequence[str]) -> Iterator[tuple[str, Row | None]]:
    with tempfile.TemporaryDirectory() as folder:
        by_cpu: dict[str, pathlib.Path] = {}
        yield from each_unit(keys, lambda key: unit(context, key, by_cpu, pathlib.Path(folder)))


def unit(context: Context, key: str, by_cpu: dict[str, pathlib.Path], folder: pathlib.Path) -> Row:
    graph, way = key.split(" ", 1)
    fxopt = Fxopt(context.fxopt)
    path = prepared(fxopt, ROOT / "testdata" / f"{graph}.pb.zst", "" if "twin" in graph else "full", folder)
    if graph not in by_cpu:
        expected = folder / f"{graph}.safetensors"
        run_step(context.fxopt, path, "--output", expected)
        by_cpu[graph] = expected
    where = () if context.is_dry else ("--device", "cuda", *WAYS[way])
    told = run_step(context.fxopt, path, *where, "--expect", by_cpu[graph], "--tolerance", "bitwise")
    compared = told["comparison"]
    row: Row = {"graph": graph, "way": way, "outputs": len(compared), "differing": sum(each["differing"] > 0 for each in compared)}
    row |= {name: told["memory"][name] for name in ("equal_allocator_events", "first_difference") if name in told["memory"]}
    return row


def table_of(rows: Sequence[Row]) -> list[str]:
    cells = []
    for row in rows:
        events = row.get("first_difference") or (f"{row['equal_allocator_events']} equal" if "equal_allocator_events" in row else "")
        cells.append([row["graph"], row["way"], str(row["outputs"]), str(row["differing"]), events])
    return table(["graph", "memory", "outputs", "bits differ from the CPU's", "allocator's events"], cells)


STAGE = Stage("bits", "GPT-2's steps on the GPU: bits against the CPU's, allocator's events", -1, 120, processes, run, table_of)
