#!/usr/bin/env python3
"""Runs PyTorch's own partitioner tests with fxopt's partitioners in place of PyTorch's.

    scripts/peers/partitioner_tests.py FOLDER [--fxopt PROGRAM] [--only TEXT] [--all] [--json FILE]
                                       [FILE...]

FOLDER holds test files of PyTorch's repository, of the installed version, with the modules that
they import: by default `test_aotdispatch.py` and `test_ac.py` of `test/functorch`, and
`common_utils.py`. Each file runs twice, in a process of its own: unchanged, and with the code of
`default_partition` and `min_cut_rematerialization_partition` replaced by calls of
`fxopt.partitioner()`, with `mode=default` and `mode=min-cut,compat=torch`. So every holder of these
functions calls fxopt, by any name or as a default argument. Every test counts the calls: one
without a call is "not reached", and no evidence. Recomputed calls of backward have PyTorch's names,
since tests read code.

Tests that fxopt need not pass are listed below with a reason. They run all the same, and a row
reports each that passes. Without an accelerator, `test_ac.py` runs on the CPU, and the profiler
counts its bytes.

The table has a row for each test that did not pass both times, with --all for each test, then
counts by class. --only selects tests whose name contains that text. Exits with 1 if fxopt fails a
test that PyTorch's partitioner passes and that is not listed, or if a run breaks off. Needs torch
and the tests' imports; no GPU.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from command import command_line

FILES = ("test_aotdispatch.py", "test_ac.py")
CUTS = {"default_partition": "mode=default", "min_cut_rematerialization_partition": "mode=min-cut,compat=torch"}
BUDGET = "asks for PyTorch's memory budget, below 1.0"
# Tests that fxopt's partitioner need not pass -> why.
NOT_PORTABLE = {
    "MemoryBudgetTest.test_attention_vs_linear": BUDGET,
    "MemoryBudgetTest.test_matmul_even_chain": BUDGET,
    "MemoryBudgetTest.test_matmul_uneven_chain": BUDGET,
    "MemoryBudgetTest.test_prioritize_cheaper_matmul": BUDGET,
    "MemoryBudgetTest.test_prioritize_cheaper_matmul2": BUDGET,
    "MemoryBudgetTest.test_profile": BUDGET,
    "MemoryBudgetTest.test_rematerializes_cheap": BUDGET,
}
# Replacements of the code of PyTorch's functions. Names are looked up in their module.
STAND_INS: dict[str, Callable] = {
    "default_partition": lambda *args, **kwargs: globals()["fxopt_by_name"]["default_partition"](*args, **kwargs),
    "min_cut_rematerialization_partition": lambda *args, **kwargs: globals()["fxopt_by_name"][
        "min_cut_rematerialization_partition"
    ](*args, **kwargs),
}

Json = dict[str, Any]


def use_names_of_originals(backward: Any) -> None:
    """Renames backward's recomputed calls as PyTorch does: by their names in forward."""
    names = {node.name for node in backward.graph.nodes}
    for node in backward.graph.nodes:
        name = re.sub(r"_recomputed(_\d+)?$", "", node.name)
        if name != node.name and name not in names:
            names.add(name)
            node.name = name
    backward.recompile()


def replace_partitioners(calls: collections.Counter[str]) -> None:
    """Replaces PyTorch's two functions by fxopt's for every holder; their calls are counted by
    name."""
    import fxopt
    from torch._functorch import partitioners

    def stand_in_of(name: str) -> Callable:
        partition_fn = fxopt.partitioner(cut=CUTS[name])

        def partition(*args: object, **kwargs: object) -> object:
            calls[name] += 1
            forward, backward = partition_fn(*args, **kwargs)
            use_names_of_originals(backward)
            return forward, backward

        return partition

    partitioners.fxopt_by_name = {name: stand_in_of(name) for name in CUTS}
    for name in CUTS:
        function, stand_in = getattr(partitioners, name), STAND_INS[name]
        function.__signature__ = inspect.signature(function)
        function.__code__, function.__defaults__, function.__kwdefaults__ = stand_in.__code__, None, None


def activation_megabytes(function: Callable) -> float:
    """The same count as `get_act_mem` of test_ac.py, on a CPU."""
    from torch.profiler import ProfilerActivity, profile

    function().backward()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        loss = function()
    loss.backward()
    return sum(event.self_cpu_memory_usage for event in found.events()) / (1 << 20)


def use_cpu(module: Any) -> None:
    """Makes test_ac.py run without an accelerator."""
    import torch

    if hasattr(module, "get_act_mem") and not torch.accelerator.is_available():
        module.GPU_TYPE, module.get_act_mem = "cpu", activation_megabytes


class Recorder(unittest.TestResult):
    """Writes one line of JSON for each test that ended: outcome, reason, calls of fxopt's
    partitioners."""

    def __init__(self, target: Any, calls: collections.Counter[str]) -> None:
        super().__init__()
        self.target, self.calls = target, calls

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.calls.clear()
        self.outcome, self.reason = "passed", ""

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        name = ".".join(test.id().split(".")[-2:])
        found = {"test": name, "outcome": self.outcome, "reason": self.reason, "calls": dict(self.calls)}
        self.target.write(json.dumps(found) + "\n")
        self.target.flush()

    def note(self, outcome: str, reason: str) -> None:
        if self.outcome != "failed":
            self.outcome, self.reason = outcome, reason

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.note("failed", f"{err[0].__name__}: {err[1]}")

    addError = addFailure

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self.addFailure(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.note("skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self.note("failed as expected", "")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self.note("failed", "passed unexpectedly")


def tests_of(suite: unittest.TestSuite, only: str) -> Iterator[unittest.TestCase]:
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item, only)
        elif only in item.id():
            yield item


def run_here(file: pathlib.Path, *, is_ours: bool, only: str, target: pathlib.Path) -> None:
    """Runs the tests of the file and writes the outcome of each."""
    calls: collections.Counter[str] = collections.Counter()
    sys.path.insert(0, str(file.parent))
    module = importlib.import_module(file.stem)
    use_cpu(module)
    if is_ours:
        replace_partitioners(calls)
    suite = unittest.TestSuite(tests_of(unittest.defaultTestLoader.loadTestsFromModule(module), only))
    with target.open("w", encoding="utf-8") as out:
        suite.run(Recorder(out, calls))


def run_apart(file: pathlib.Path, who: str, options: argparse.Namespace) -> tuple[dict[str, Json], bool]:
    """The same in a process of its own: the outcome of each test, by name, and whether the run
    broke off."""
    with tempfile.TemporaryDirectory(prefix="fxopt-tests-") as folder:
        target = pathlib.Path(folder) / "tests.jsonl"
        script = str(pathlib.Path(__file__).resolve())
        command = [sys.executable, script, str(file.parent), file.name, "--only", options.only]
        command += ["--run", who, str(target)]
        program = options.fxopt or os.environ.get("FXOPT")
        program = {"FXOPT": str(pathlib.Path(program).resolve())} if program else {}
        # Caches on disk would return the cuts of another partitioner.
        apart = {"TORCHINDUCTOR_CACHE_DIR": folder}
        # Failing programs leave reproducers in the current folder.
        done = subprocess.run(command, env=os.environ | program | apart, cwd=folder, capture_output=True, text=True)
        lines = target.read_text(encoding="utf-8").splitlines() if target.exists() else []
        found = {record["test"]: record for record in map(json.loads, lines)}
    if done.returncode:
        print(f"{file.name}, {who}: ended with {done.returncode} after {len(found)} tests\n{done.stderr[-2000:]}")
    return found, done.returncode != 0


def judged(test: str, theirs: Json, ours: Json | None) -> tuple[str, str]:
    """The verdict on the test with fxopt's partitioner, in a word, and the reason."""
    if ours is None:
        return "failed", "did not end"
    if theirs["outcome"] == "skipped":
        return "skipped", ""
    excuse, same = NOT_PORTABLE.get(test, ""), ours["outcome"] == theirs["outcome"]
    if not ours["calls"]:
        return ("not reached", "") if same else ("failed", ours["reason"])
    if theirs["outcome"] == "failed":
        return "no verdict", "PyTorch's own fails"
    if not same:
        return ("not portable", excuse) if excuse else ("failed", ours["reason"])
    return "passed", f"listed as not portable: {excuse}" if excuse else ""


def shown(text: str, width: int = 160) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= width else f"{line[: width - 3]}..."


def counted(verdicts: collections.Counter[str]) -> str:
    return ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("files", nargs="*", default=list(FILES), metavar="FILE", help=f"default: {' '.join(FILES)}")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--all", action="store_true", help="print a row for each test")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write both outcomes of every test there")
    parser.add_argument("--run", nargs=2, metavar=("WHO", "TARGET"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        who, target = options.run
        file = options.folder / options.files[0]
        run_here(file.resolve(), is_ours=who == "fxopt", only=options.only, target=pathlib.Path(target))
        return 0
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    report, is_broken = {}, False
    print("| test | PyTorch's own | fxopt's | why |\n|---|---|---|---|")
    for name in options.files:
        runs = [run_apart(options.folder.resolve() / name, who, options) for who in ("torch", "fxopt")]
        (theirs, _), (ours, _) = runs
        is_broken = is_broken or any(broke for _, broke in runs)
        for test, found in theirs.items():
            verdict, why = judged(test, found, ours.get(test))
            counts[test.split(".")[0]][verdict] += 1
            report[test] = {"torch": found, "fxopt": ours.get(test), "verdict": verdict}
            if options.all or (verdict, why) != ("passed", ""):
                print(f"| {test} | {found['outcome']} | {verdict} | {shown(why or found['reason'])} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print("\n| class | tests | outcomes with fxopt's |\n|---|--:|---|")
    total: collections.Counter[str] = collections.Counter()
    for name, each in counts.items():
        total += each
        print(f"| {name} | {each.total()} | {counted(each)} |")
    print(f"\n{total.total()} tests: {counted(total)}")
    return int(total["failed"] > 0 or is_broken)


if __name__ == "__main__":
    sys.exit(main())
