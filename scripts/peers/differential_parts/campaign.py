"""Runs many programs through many pipelines, in several processes, and collects the outcomes."""

from __future__ import annotations

import pathlib
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from fxopt.reader import LoadError
from fxopt.tool import FxoptError
from fxopt.writer import ExportError
from torch.fx import GraphModule

from differential_parts import families, observe, pipelines
from differential_parts.collectives import CHANGED
from differential_parts.observe import Seen
from differential_parts.optimize import Optimized, Optimizer
from differential_parts.pipelines import INFERRING
from differential_parts.programs import FAILING, Dice, Program, Unusable

NOT_EQUIVALENT = "FX0420"  # the proof after a pass
BROKEN_OUTPUT = "]: after pass "  # the verifier refuses the pass's output
STOPPED_AFTER = re.compile(re.escape(BROKEN_OUTPUT) + r"(\d+) ")
AGAIN = 4  # runs of the original before a result is called wrong
MERGING = ("collectives=true", "compat=torch", INFERRING, "bucket", "dedup-unshards", "fuse-gathers", "alias-round-trips")
APPLY_SHARE = 0.08  # share of the runs by bridge.apply, not on a file


@dataclass
class Run:
    passes: str
    changed: dict[str, bool] = field(default_factory=dict)
    recomputed: int = 0
    refused: str | None = None
    differences: list[str] = field(default_factory=list)
    by_apply: bool = False
    # by the proof; the result of the pipeline without the proof is compared
    is_stopped: bool = False

    @property
    def has_changed(self) -> bool:
        return any(self.changed.values())


@dataclass
class Outcome:
    seed: int
    family: str = ""
    features: list[str] = field(default_factory=list)
    skipped: str | None = None
    runs: list[Run] = field(default_factory=list)


def prepare_process() -> None:
    """Uses one thread, no warnings, and not-a-number for uninitialized memory."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    torch.use_deterministic_algorithms(True, warn_only=True)


def run_graph(program: Program, graph_module: GraphModule, run: Callable[..., object] | None = None) -> Seen:
    """One execution, by `run` if that is given; the graph's attributes are restored afterwards."""
    attributes = observe.attributes_of(graph_module)
    given = program.inputs()
    wanted = None
    if program.has_gradients:
        wanted = [f"input {place}" for place in range(len(given))]
        wanted += [f"attribute {path}" for path in program.parameters]
    with observe.kept(attributes):
        return observe.execute(run or graph_module, given, attributes, wanted)


def steady_run(program: Program) -> Seen:
    """The results of a program, which must be the same in two executions. Otherwise raises
    Unusable."""
    seen = run_graph(program, program.graph_module)
    if seen.error is not None and FAILING not in seen.error:
        raise Unusable("the original cannot be run")
    if observe.differences(seen, run_graph(program, program.graph_module)):
        raise Unusable("two runs of the original differ")
    return seen


class Subject:
    """A program whose executions agree with one another, ready for pipelines. Otherwise raises
    Unusable."""

    def __init__(self, seed: int, fxopt: str, folder: pathlib.Path, family: str | None = None) -> None:
        self.program, self.family = families.make(seed, family)
        self.seen = steady_run(self.program)
        if any(CHANGED in message for messages in self.seen.messages.values() for message in messages):
            raise Unusable("a message is written while it is on its way")
        self.program.features |= _sharing(self.seen)
        try:
            self.optimizer = Optimizer.of(self.program, fxopt, folder)
        except ExportError as error:
            raise Unusable(f"ExportError: {str(error)[:60]}") from error

    def optimize(self, passes: str, *, by_apply: bool = False) -> Optimized:
        return self.optimizer.apply(passes) if by_apply else self.optimizer.run(passes)

    def judge(self, passes: str, *, by_apply: bool = False) -> Run:
        """Runs one pipeline: its changes, and the differences that a caller sees."""
        run = Run(passes, by_apply=by_apply)
        try:
            result = self.optimize(passes, by_apply=by_apply)
        except FxoptError as error:
            run.refused = error.code or f"exit {error.exit_code}"
            if error.code == NOT_EQUIVALENT:
                return self._judge_stopped(run, str(error))
            if error.exit_code not in (2, 3, 4, 8) or BROKEN_OUTPUT in str(error):
                run.differences.append(f"exit {error.exit_code}: {str(error).splitlines()[0][:120]}")
            return run
        except LoadError as error:
            run.refused = f"LoadError {str(error)[-60:]}"
            return run
        self._execute(run, result)
        return run

    def _judge_stopped(self, run: Run, said: str) -> Run:
        """Executes a result that the proof stopped and checks whether it is wrong. Later passes may
        refuse it."""
        run.is_stopped = True
        place = STOPPED_AFTER.search(said)
        try:
            self._execute(run, self.optimizer.run(run.passes, prove=False, stop_after=int(place[1]) if place else None))
        except (FxoptError, LoadError) as error:
            run.differences.append(f"without the proof: {str(error).splitlines()[0][:120]}")
        return run

    def _execute(self, run: Run, result: Optimized) -> None:
        run.changed, run.recomputed = result.changed, result.recomputed
        program, seen = self.program, self.seen
        if INFERRING in run.passes:
            program = program.forward()
            seen = run_graph(program, program.graph_module)
        run.differences = differences(seen, run_graph(program, result.graph_module), run.passes)
        if not run.differences:
            return
        for _ in range(AGAIN):  # uninitialized memory mostly reads the same twice
            if observe.differences(seen, run_graph(program, program.graph_module)):
                run.differences, run.refused = [], "two runs of the original differ"
                return


def differences(before: Seen, after: Seen, passes: str) -> list[str]:
    """The differences of a pipeline's result. remat and partition may launch collectives again;
    they may be merged by that option, compat=torch and the passes over collectives; forward alone
    keeps those that it reads. Messages never change."""
    may_merge = any(word in passes for word in MERGING)
    may_repeat = "remat" in passes or "partition" in passes
    return observe.differences(
        before, after, same_collectives=not may_merge and not may_repeat, all_collectives=not may_merge
    )


def _sharing(seen: Seen) -> set[str]:
    """Whether outputs share memory with inputs, or with one another."""
    firsts = [(name, first) for name, first in seen.storages.items() if name.startswith("output ") and first != name]
    found = {"output aliases an input"} if any(not first.startswith("output ") for _, first in firsts) else set()
    return found | ({"outputs alias each other"} if any(first.startswith("output ") for _, first in firsts) else set())


def drawn_pipelines(program: Program, dice: Dice, passes: Sequence[pipelines.Pass], count: int) -> list[str]:
    """Random pipelines that suit a program."""
    return pipelines.random_pipelines(
        dice,
        passes,
        program.graph_module,
        count,
        tagged="tags" in program.features or "forward-loss-backward" in program.features,
        unmarked=not {"forward-loss-backward", "joint"}.isdisjoint(program.features) and "phase marks" not in program.features,
        joint="joint" in program.features,
        marked="marks" in program.features,
    )


def judge_seed(
    seed: int,
    fxopt: str,
    passes: Sequence[pipelines.Pass],
    count: int,
    told: Sequence[str] = (),
    family: str | None = None,
) -> Iterator[Run | Outcome]:
    """Yields each run before it is checked, so that the caller knows which one never ends, and last
    the outcome."""
    outcome = Outcome(seed)
    with tempfile.TemporaryDirectory() as folder:
        try:
            subject = Subject(seed, fxopt, pathlib.Path(folder), family)
        except Unusable as error:
            outcome.skipped = str(error)
            yield outcome
            return
        outcome.family, outcome.features = subject.family, sorted(subject.program.features)
        dice = Dice(seed + 10**9)
        for text in told or drawn_pipelines(subject.program, dice, passes, count):
            by_apply = dice.chance(APPLY_SHARE) and "partition" not in text
            yield Run(text, by_apply=by_apply)
            outcome.runs.append(subject.judge(text, by_apply=by_apply))
    yield outcome
