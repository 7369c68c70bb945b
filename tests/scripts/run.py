"""Runs every *_test.py beside this file with unittest, or those that a pattern names, one file on
each core at a time, each in a process of its own (torch has state that one file would leave to the
next, such as autograd's device threads):

    run.py [PATTERN] [--jobs N]

Prints the skipped tests of each file when it ends, and its whole output if a test failed. The last
lines are the seconds of each file and `N passed, N failed, N skipped`."""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import io
import multiprocessing
import os
import pathlib
import sys
import time
import unittest

import setting  # noqa: F401  puts the scripts on the path

FOLDER = pathlib.Path(__file__).resolve().parent
# The slowest files come first, so that no core is idle at the end.
LONGEST = ("gpu_check_test.py", "differential_test.py", "step_memory_test.py")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of the tests of one file, or of several."""

    said: str = ""
    seconds: float = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def report(self) -> str:
        """Returns the lines that explain failed and skipped tests."""
        if self.failed:
            return self.said
        return "".join(line for line in self.said.splitlines(True) if "... skipped" in line)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run_file(name: str) -> Outcome:
    """Runs the file in this process. The output of the tests is part of the outcome."""
    start = time.monotonic()
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        suite = unittest.defaultTestLoader.discover(str(FOLDER), pattern=name)
        result = unittest.TextTestRunner(stream=said, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    # A failure in setUpClass or at import counts as an error without a test run, so the count stops
    # at 0.
    passed = max(0, result.testsRun - failed - skipped)
    return Outcome(said.getvalue(), time.monotonic() - start, passed, failed, skipped)


def run_in_own_process(name: str) -> Outcome:
    """Runs the file in a new process. A process that ends early counts as one failure."""
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        try:
            return process.submit(run_file, name).result()
        except concurrent.futures.BrokenExecutor as error:
            return Outcome(f"the process ended: {error}\n", failed=1)


def run_files(names: list[str], jobs: int) -> dict[str, Outcome]:
    """Runs the files, `jobs` at a time."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    outcomes = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(run_in_own_process, name): name for name in names}
        for done in concurrent.futures.as_completed(running):
            name = running[done]
            outcomes[name] = done.result()
            print(f"== {name}\n{outcomes[name].report()}", end="", flush=True)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="*_test.py", help="which files (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="files at a time (default: the cores)")
    options = parser.parse_args()
    names = sorted((path.name for path in FOLDER.glob(options.pattern)), key=lambda name: (name not in LONGEST, name))
    outcomes = run_files(names, options.jobs)
    for name, outcome in sorted(outcomes.items(), key=lambda item: -item[1].seconds):
        print(f"{outcome.seconds:6.1f} s  {name}: {outcome}")
    found = list(outcomes.values())
    total = Outcome(
        passed=sum(o.passed for o in found), failed=sum(o.failed for o in found), skipped=sum(o.skipped for o in found)
    )
    print(total)
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
