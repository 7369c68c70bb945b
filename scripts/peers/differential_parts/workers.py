"""Checks seeds in processes of their own, so that a crash or a graph that never ends is an
outcome."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait

from differential_parts import campaign, pipelines
from differential_parts.campaign import Outcome, Run

SECONDS = 120  # limit for one step of a seed


def _serve(
    connection: Connection,
    fxopt: str,
    known: Sequence[pipelines.Pass],
    count: int,
    told: Sequence[str],
    family: str | None,
) -> None:
    # PyTorch's warnings about odd programs
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    campaign.prepare_process()
    try:
        while True:
            for item in campaign.judge_seed(connection.recv(), fxopt, known, count, told, family):
                connection.send(item)
    except (EOFError, BrokenPipeError):
        return  # the parent is gone


class _Worker:
    def __init__(self, arguments: tuple) -> None:
        self._arguments = arguments
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, *self._arguments), daemon=True)
        self.process.start()
        other.close()
        self.outcome: Outcome | None = None
        self.pending: list[Run] = []

    def restart(self) -> None:
        """Restarts after a trace that failed: PyTorch may keep its marks, which a later trace would
        inherit."""
        self.process.kill()
        self.process.join()
        self.start()

    def give(self, seed: int) -> None:
        self.outcome, self.pending, self.since = Outcome(seed), [], time.monotonic()
        self.connection.send(seed)

    def take(self) -> Outcome | None:
        """The outcome, once it is available."""
        try:
            item = self.connection.recv()
        except EOFError:
            return self.ended("the process died")
        self.since = time.monotonic()
        if isinstance(item, Outcome):
            return item
        self.pending.append(item)
        return None

    def ended(self, why: str) -> Outcome:
        """The outcome of a seed whose process has died: the fault is that of the current pipeline,
        if there is one."""
        self.process.kill()
        self.process.join()
        outcome, pending = self.outcome, self.pending
        if pending:
            pending[-1].differences.append(why)
            outcome.runs, outcome.family = pending, "?"
        else:
            outcome.skipped = why
        self.start()
        return outcome


class Pool:
    """`jobs` processes. Outcomes come in the order of seeds, in whatever order they end."""

    def __init__(
        self, jobs: int, fxopt: str, known: Sequence[pipelines.Pass], count: int, told: Sequence[str], family: str | None = None
    ) -> None:
        self._workers = [_Worker((fxopt, known, count, told, family)) for _ in range(jobs)]

    def outcomes(self, seeds: Iterable[int]) -> Iterator[Outcome]:
        left, order, done = iter(seeds), [], {}
        busy = {worker.connection: worker for worker in self._workers if _next(worker, left, order)}
        while busy:
            for connection in wait(list(busy), timeout=5):
                worker = busy.pop(connection)
                if (outcome := worker.take()) is None:
                    busy[connection] = worker
                    continue
                done[outcome.seed] = outcome
                if (outcome.skipped or "").startswith("make_fx"):
                    worker.restart()
                if _next(worker, left, order):
                    busy[worker.connection] = worker
            for connection, worker in list(busy.items()):
                if time.monotonic() - worker.since > SECONDS:
                    del busy[connection]
                    outcome = worker.ended(f"no end within {SECONDS} s")
                    done[outcome.seed] = outcome
                    if _next(worker, left, order):
                        busy[worker.connection] = worker
            while order and order[0] in done:
                yield done.pop(order.pop(0))

    def stop(self) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()


def _next(worker: _Worker, left: Iterator[int], order: list[int]) -> bool:
    seed = next(left, None)
    if seed is None:
        return False
    order.append(seed)
    worker.give(seed)
    return True
