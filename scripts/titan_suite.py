#!/usr/bin/env python3
"""Runs the pass tests of the installed torchtitan's graph trainer with fxopt replacing its passes.

    scripts/titan_suite.py [--fxopt PROGRAM] [--ours] [--json FILE]

The tests run three times, each in its own process: with torchtitan's passes, with a control that
changes nothing, and with fxopt. A test that passes with the control proves nothing about a pass, so
only tests that fail with the control count as evidence. The graphs of titan/weak_graphs.py, on
which torchtitan's passes fail, run last.

Exits with 1 if fxopt fails a test that torchtitan passes, or a check of such a graph.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from fxopt import tool

SCRIPTS = pathlib.Path(__file__).resolve().parent
FOLDER = SCRIPTS / "titan"
TESTS = "torchtitan.experiments.graph_trainer.tests"
MODULES = [f"{TESTS}.test_passes", f"{TESTS}.test_graph_pp_passes", str(FOLDER / "test_moved.py")]

# Classes of tests -> fxopt's replacement.
OURS = {
    "TestEliminateDeadCodePass": "dce",
    "TestMoved": "dce",
    "TestRemoveDetachPass": "canonicalize",
    "TestRemoveIdentityViewPass": "canonicalize",
    "TestRemoveB2BTransposePass": "canonicalize",
    "TestRemoveIdentitySlicePass": "canonicalize",
    "TestNormalizeViewOpsAsReshape": "canonicalize",
    "TestCanonicalizeGraphPass": "canonicalize",
    "TestSelectiveActivationRematPass": "remat",
    "TestApplySACPass": "sac, remat",
    "TestFullMemoryPolicy": "sac",
}
# Classes of tests whose pass has no stand-in by fxopt -> the tested feature.
MISSING = {
    "TestFSDPUnshardDedupPass": "merging of the gathers of one parameter",
    "TestFsdpDenseSchedulerPass": "scheduling of gathers and scatters into dense regions",
    "TestCpuOffloadPass": "offload to the host",
    "TestAnnotateRMSNormForRegionalInductorPass": "marks for a compiler of regions",
    "TestChunkPasses": "chunking and scheduling of expert parallelism",
    "TestIsFullCudagraphable": "a verdict on CUDA graphs",
    "GraphPPPartitionTest": "partition into forward and backward",
    "GraphPPFSDPCollectiveSplitTest": "splitting of gathers and scatters off a stage",
}
# Classes of tests that test no pass over a graph -> their subject.
NO_PASS = {
    "TestDefaultTransformerBlockBuckets": "a list of passes",
    "TestAnnotateModuleFqns": "the tracer's annotations",
    "TestEagerChunking": "wrappers of modules",
    "TestCustomCodegenPass": "Python code generated from a graph",
}
# Classes of tests that need GPUs -> the tested pass.
NEED_GPUS = {
    "TestReassignCollectivePgsPass": "other groups for gathers",
    "TestOverlapPgIsolationPass": "other groups for exchanges",
    "TestBucketingPrefetchOrder": "bucketing (its test of dead code runs as TestMoved)",
    "TestAsyncTensorParallelPass": "fused products and collectives",
    "GraphPPSplitDiDwTest": "splitting of backward",
    "GraphPPPartitionFSDPTest": "partition",
    "GraphPPFSDPCollectiveSplitDsv3Test": "splitting of gathers and scatters off a stage",
}


@dataclasses.dataclass
class Row:
    """One class of tests. Lists contain names of tests."""

    name: str
    by: str
    tests: int
    titan: list[str]  # passed with torchtitan's passes
    evidence: list[str]  # the tests in `titan` that failed with the control
    fxopt: list[str]  # the tests in `titan` that passed with fxopt
    unasked: list[str]  # the tests in `titan` that called no pass
    trimmed: list[str]  # the tests in `fxopt` with calls cut to their schemas
    is_swapped: bool  # some test called a pass that the control replaces


def run_tests(mode: str, classes: list[str], fxopt: str | None) -> dict[str, Any]:
    """Runs pytest once and returns its report, see titan_plugin.py."""
    with tempfile.TemporaryDirectory(prefix="fxopt-titan-") as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "titan_plugin"]
        command += ["--titan-mode", mode, "--titan-report", str(report), "--rootdir", folder]
        command += ["-k", " or ".join(classes), "--pyargs", *MODULES]
        result = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=_environment(fxopt))
        if not report.exists():
            raise SystemExit(f"titan_suite: pytest failed in mode {mode}\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
        return json.loads(report.read_text())


def _environment(fxopt: str | None) -> dict[str, str]:
    paths = [str(FOLDER), str(SCRIPTS), os.environ.get("PYTHONPATH", "")]
    program = {"FXOPT": str(pathlib.Path(fxopt).resolve())} if fxopt else {}
    return os.environ | program | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def outcomes(report: dict[str, Any], name: str, outcome: str) -> list[str]:
    """Returns the tests of class `name` with that outcome."""
    tests = report["tests"].items()
    return [key.split("::")[-1] for key, test in tests if test["class"] == name and test["outcome"] == outcome]


def make_row(name: str, by: str, titan: dict[str, Any], control: dict[str, Any], fxopt: dict[str, Any] | None) -> Row:
    passed = outcomes(titan, name, "passed")
    is_swapped = any(test["passes"] for test in control["tests"].values() if test["class"] == name)
    row = Row(name, by, titan["collected"].get(name, 0), passed, [], [], [], [], is_swapped)
    row.evidence = [test for test in outcomes(control, name, "failed") if test in passed]
    for key, test in (fxopt or {"tests": {}})["tests"].items():
        short = key.split("::")[-1]
        if test["class"] != name or short not in passed:
            continue
        if not test["passes"]:
            row.unasked.append(short)
        elif test["outcome"] == "passed":
            row.fxopt.append(short)
            row.trimmed += [short] if test["trimmed"] else []
    return row


# ---- printing


def print_ours(rows: list[Row]) -> None:
    print("\nfxopt replacing torchtitan's passes")
    print("(control: tests that pass although nothing was changed; evidence: tests that then fail)\n")
    cells = [("class", "pass", "tests", "torchtitan", "control", "fxopt", "evidence", "by fxopt", "no pass called")]
    cells += [_cells(row) for row in rows]
    total = [sum(column) for column in zip(*(_counts(row) for row in rows))]
    cells.append(("", "", *(str(number) for number in total)))
    print_table(cells)


def _counts(row: Row) -> tuple[int, ...]:
    proven = [test for test in row.fxopt if test in row.evidence]
    same = len(row.titan) - len(row.evidence)
    numbers = (row.tests, len(row.titan), same, len(row.fxopt), len(row.evidence), len(proven), len(row.unasked))
    return numbers


def _cells(row: Row) -> tuple[str, ...]:
    return (row.name, row.by, *(str(number) for number in _counts(row)))


def print_failures(rows: list[Row], report: dict[str, Any]) -> int:
    """Prints the tests that fxopt failed, and returns their number."""
    failed = 0
    messages = {key.split("::")[-1]: test["message"] for key, test in report["tests"].items()}
    for row in rows:
        for test in row.titan:
            if test in row.fxopt or test in row.unasked:
                continue
            failed += 1
            print(f"\nfailed with fxopt: {row.name}.{test}\n  {messages.get(test, 'did not run').splitlines()[0]}")
    trimmed = [f"{row.name}.{test}" for row in rows for test in row.trimmed]
    if trimmed:
        print("\nCalls with too many or too few arguments were fitted to their schemas for fxopt in:")
        print("\n".join(f"  {test}" for test in trimmed))
    return failed


def print_missing(rows: list[Row], collected: dict[str, int]) -> None:
    print("\nPasses that fxopt lacks\n")
    cells = [("class", "tests", "torchtitan", "evidence", "missing")]
    for row in rows:
        evidence = str(len(row.evidence)) if row.is_swapped else "-"  # no control for these tests
        cells.append((row.name, str(row.tests), str(len(row.titan)), evidence, row.by))
    print_table(cells)
    print("\nNot run\n")
    others = [(name, collected, "not a pass over a graph: " + why) for name, why in NO_PASS.items()]
    others += [(name, collected, "needs GPUs: " + why) for name, why in NEED_GPUS.items()]
    print_table([("class", "tests", "why")] + [(name, str(counts.get(name, 0)), why) for name, counts, why in others])


def print_table(cells: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    for row in cells:
        padded = [c.rjust(w) if c.isdigit() else c.ljust(w) for c, w in zip(row, widths)]
        print("  ".join(padded).rstrip())


# ---- the command


def run_weak_graphs(fxopt: str | None) -> int:
    print("\nGraphs on which torchtitan's passes fail\n", flush=True)
    return subprocess.run([sys.executable, str(FOLDER / "weak_graphs.py")], env=_environment(fxopt)).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="torchtitan's pass tests with fxopt replacing its passes.")
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    parser.add_argument("--ours", action="store_true", help="leave out tests of passes that fxopt lacks")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows of all classes to this file")
    options = parser.parse_args()
    if tool.find_fxopt(options.fxopt) is None:
        parser.error("no fxopt program: build it, then pass --fxopt or set FXOPT")

    classes = [*OURS] if options.ours else [*OURS, *MISSING]
    titan = run_tests("titan", classes, options.fxopt)
    control = run_tests("control", classes, options.fxopt)
    fxopt = run_tests("fxopt", [*OURS], options.fxopt)
    ours = [make_row(name, by, titan, control, fxopt) for name, by in OURS.items()]
    missing = [] if options.ours else [make_row(name, by, titan, control, None) for name, by in MISSING.items()]
    print_ours(ours)
    failed = print_failures(ours, fxopt)
    if missing:
        print_missing(missing, titan["collected"])
    if options.json:
        rows = [dataclasses.asdict(row) for row in ours + missing]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if run_weak_graphs(options.fxopt) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
