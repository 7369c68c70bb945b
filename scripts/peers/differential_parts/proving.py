"""Finds the planted mistakes that the proof stops by itself: runs random programs through the fxopt
program and executes nothing."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fxopt import tool
from fxopt.writer import ExportError

from differential_parts import campaign, families, pipelines
from differential_parts.optimize import NO_REPRODUCER, Optimizer, numerics
from differential_parts.programs import Dice, Unusable

UNPROVED = "unproved"  # a warning: the proof is undecided


@dataclass
class Stop:
    """The first run of its kind that the program without the mistake accepts."""

    seed: int
    passes: str
    said: str


@dataclass
class Row:
    name: str
    rule: str
    runs: int = 0
    # runs whose end differs from that of the program without the mistake, up to the stop
    changed: int = 0
    stopped: Stop | None = None  # by the proof
    others: dict[str, Stop] = field(default_factory=dict)  # by code: other refusals, UNPROVED


@dataclass(frozen=True)
class _End:
    refused: str  # the code; empty if it was accepted
    said: str
    is_unproved: bool
    written: str


def judge(rows: Mapping[int, Row], fxopt: str, runs: int) -> Iterator[Row]:
    """Fills the rows, each for the mistake with that number, and yields each at its end. Every
    program goes through fxopt with each mistake that is not stopped yet."""
    campaign.prepare_process()
    known = pipelines.known_passes(fxopt)
    left = dict(rows)
    seed = 0
    while left and runs > next(iter(left.values())).runs:
        with tempfile.TemporaryDirectory() as name:
            seed, optimizer, passes = _next_program(seed, fxopt, known, pathlib.Path(name))
            without = _end(0, optimizer, passes)
            for number, row in list(left.items()):
                _count(row, without, _end(number, optimizer, passes), seed, passes)
                if row.stopped is not None:
                    yield left.pop(number)
        seed += 1
    yield from left.values()


def _next_program(seed: int, fxopt: str, known: list[pipelines.Pass], folder: pathlib.Path) -> tuple[int, Optimizer, str]:
    """The first seed from that one on that gives a program, and its pipeline."""
    while True:
        try:
            program, _ = families.make(seed)
            optimizer = Optimizer.of(program, fxopt, folder)
        except (Unusable, ExportError):
            seed += 1
            continue
        passes = campaign.drawn_pipelines(program, Dice(seed + 10**9), known, 1)[0]
        return seed, optimizer, passes


def _end(number: int, optimizer: Optimizer, passes: str) -> _End:
    """The end of a program with that mistake; 0 is without one."""
    os.environ["FXOPT_PLANTED"] = str(number)
    target = optimizer.folder / "after.json"
    arguments = ["opt", str(optimizer.source), "-o", str(target), "--passes", passes, NO_REPRODUCER, *numerics(passes)]
    try:
        told = tool.call(optimizer.fxopt, arguments, optimizer.folder)
    except tool.FxoptError as error:
        # below 0: it was killed
        code = error.code if error.code and error.exit_code > 0 else f"exit {error.exit_code}"
        return _End(code, str(error).splitlines()[0], False, "")
    unproved = [warning["message"] for warning in told.get("warnings", []) if warning["code"] == UNPROVED]
    return _End("", "; ".join(unproved), bool(unproved), target.read_text(encoding="utf-8"))


def _count(row: Row, without: _End, end: _End, seed: int, passes: str) -> None:
    row.runs += 1
    row.changed += (end.refused, end.written) != (without.refused, without.written)
    if without.refused:
        return
    stop = Stop(seed, passes, end.said)
    if end.refused == campaign.NOT_EQUIVALENT:
        row.stopped = stop
    elif end.refused:
        row.others.setdefault(end.refused, stop)
    elif end.is_unproved and not without.is_unproved:
        row.others.setdefault(UNPROVED, stop)
