#!/usr/bin/env python3
"""Runs torchtitan's own tests of passes on collectives with fxopt in place of the pass under test.

    scripts/peers/titan_collective_tests.py FOLDER [--fxopt PROGRAM] [--only TEXT] [--json FILE]
                                            [FILE...]

FOLDER holds test files of torchtitan, of the installed version: by default `test_passes.py` and
`test_graph_pp_passes.py` of `torchtitan/experiments/graph_trainer/tests`, which the installed
package also has. fxopt replaces the pass that merges the gathers of one parameter. Each selected
test runs three times: with torchtitan's pass, without a pass, and with fxopt. The run without a
pass shows whether the test depends on it.

Prints a row for each test of the files:

    passed       with fxopt as with torchtitan's pass; `no evidence` if it also passes without
    failed       with fxopt, not with torchtitan's pass
    not reached  it does not call the pass, and ends as it does with torchtitan's
    no verdict   it fails with torchtitan's own pass, or is skipped
    waits for P  it tests P, which fxopt does not have
    not run      it is not about collectives (`scripts/titan_suite.py` runs those), or about no pass
                 over a graph

Then prints counts. Exits with 1 if a test failed, if a test of the files is listed nowhere, or if
no test reached the pass. Needs torchtitan and its tests' imports; no GPU.
"""

from __future__ import annotations

import collections
import functools
import importlib
import io
import json
import os
import pathlib
import sys
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from command import ROOT, command_line, program_of
from partitioner_tests import Recorder, counted, shown, tests_of

sys.path.insert(0, str(ROOT / "scripts" / "titan"))

FILES = ("test_passes.py", "test_graph_pp_passes.py")
PASS = "fsdp_passes.deduplicate_fsdp_unshard_chains_pass"
PIPELINE = "dedup-unshards{compat=titan}"
# the trainer runs its graphs without autograd, which the tests' graphs do not show
KIND = "forward_loss_backward"
WHO = ("titan", "nothing", "fxopt")

# Classes that are run.
RUN = ("TestFSDPUnshardDedupPass", "GraphPPFSDPCollectiveSplitTest")

CHUNK = "chunks of expert parallelism"
SCHEDULE = "the schedule of expert parallelism"
# Prefixes of other tests' names -> the pass that they test. The first match counts.
WAITS = {
    "TestFsdpDenseSchedulerPass.test_fsdp_dense": "gathers and scatters placed in dense regions",
    "TestReassignCollectivePgsPass": "other groups for gathers",
    "TestOverlapPgIsolationPass": "other groups for exchanges",
    "TestBucketingPrefetchOrder.test_drops_assert": "",
    "TestBucketingPrefetchOrder": "buckets by a plan of modules, in both directions",
    "TestAsyncTensorParallelPass": "products fused with gathers and scatters",
    "TestChunkPasses.test_ep_overlap_pass_pipeline_order": "",
    "TestChunkPasses.test_ep_overlap_chunk": CHUNK,
    "TestChunkPasses.test_ep_overlap": SCHEDULE,
    "TestChunkPasses.test_chunk_copied_meta": "",
    "TestChunkPasses.test_chunk_dim_classifies": "",
    "TestChunkPasses.test_chunk_rewrite": "",
    "TestChunkPasses.test_chunk": CHUNK,
    "TestChunkPasses.test_concretize": CHUNK,
    "TestChunkPasses.test_eager_chunking": CHUNK,
    "TestChunkPasses.test_static_view": CHUNK,
    "TestChunkPasses.test_view": CHUNK,
    "TestEagerChunking.test_eager_chunking_traces_overlap_metadata": CHUNK,
    "GraphPPSplitDiDwTest": "backward split into gradients of inputs and of weights",
    "GraphPPFSDPCollectiveSplitDsv3Test": "gathers and scatters split off a stage, on two GPUs",
}
HELPER = "a helper or a list of passes, no pass over a graph"
OTHER = "not about collectives"
# Prefixes of tests that are not run -> the reason.
NOT_RUN = {
    "TestFsdpDenseSchedulerPass.test_transformer_block_bucket_counts": HELPER,
    "TestBucketingPrefetchOrder.test_drops_assert": f"{OTHER}: dce",
    "TestChunkPasses": HELPER,
    "TestEagerChunking": "wrappers of modules, no pass over a graph",
    "TestDefaultTransformerBlockBuckets": HELPER,
    "TestAnnotateModuleFqns": "the tracer's annotations",
    "TestCustomCodegenPass": "Python code made of a graph",
    "TestIsFullCudagraphable": "a verdict on CUDA graphs",
    "TestAnnotateRMSNormForRegionalInductorPass": f"{OTHER}: marks for a compiler of regions",
    "TestCpuOffloadPass": f"{OTHER}: offload to the host",
    "TestApplySACPass": f"{OTHER}: sac, remat",
    "TestFullMemoryPolicy": f"{OTHER}: sac",
    "TestSelectiveActivationRematPass": f"{OTHER}: remat",
    "TestEliminateDeadCodePass": f"{OTHER}: dce",
    "TestRemoveDetachPass": f"{OTHER}: canonicalize",
    "TestRemoveIdentityViewPass": f"{OTHER}: canonicalize",
    "TestRemoveB2BTransposePass": f"{OTHER}: canonicalize",
    "TestRemoveIdentitySlicePass": f"{OTHER}: canonicalize",
    "TestNormalizeViewOpsAsReshape": f"{OTHER}: canonicalize",
    "TestCanonicalizeGraphPass": f"{OTHER}: canonicalize",
    "GraphPPPartitionTest": f"{OTHER}: partition, with titan's description of its result",
    "GraphPPPartitionFSDPTest": f"{OTHER}: partition, on two GPUs",
}

Json = dict[str, Any]


class Swap:
    """torchtitan's pass or its replacement, for every importer from here on."""

    def __init__(self) -> None:
        import stand_ins
        from fxopt import bridge

        self.who = "titan"
        self.calls: collections.Counter[str] = collections.Counter()
        original = stand_ins.find(PASS)

        @functools.wraps(original)
        def stand_in(graph_module: Any, *args: Any, **kwargs: Any) -> Any:
            self.calls[PASS] += 1
            if self.who == "titan":
                return original(graph_module, *args, **kwargs)
            if self.who == "nothing":
                return graph_module
            # torchtitan's pass also treats every input as a parameter.
            roles = ["parameter"] * len(graph_module.graph.find_nodes(op="placeholder"))
            return bridge.apply(graph_module, PIPELINE, kind=KIND, roles=roles)

        stand_ins.replace(original, stand_in)

    def run(self, who: str, tests: list[unittest.TestCase]) -> dict[str, Json]:
        """The outcome of each test, by name."""
        self.who = who
        out = io.StringIO()
        suite = unittest.TestSuite(tests)
        suite._removeTestAtIndex = lambda index: None  # the same tests run again
        suite.run(Recorder(out, self.calls))
        return {record["test"]: record for record in map(json.loads, out.getvalue().splitlines())}


def name_of(test: unittest.TestCase) -> str:
    return ".".join(test.id().split(".")[-2:])


def first_fit(table: dict[str, str], name: str) -> str:
    return next((text for start, text in table.items() if name.startswith(start)), "")


def judged(runs: dict[str, Json]) -> tuple[str, str]:
    """The verdict on a test that was run, in a word, and the reason."""
    titan, nothing, fxopt = (runs[who] for who in WHO)
    if titan["outcome"] != "passed":
        return "no verdict", f"{titan['outcome']} with torchtitan's own: {titan['reason']}"
    if fxopt["outcome"] != "passed":
        return "failed", fxopt["reason"]
    if not fxopt["calls"]:
        return "not reached", ""
    return "passed", "no evidence: also passes without a pass" if nothing["outcome"] == "passed" else ""


def verdict_of(name: str, runs: dict[str, Json] | None) -> tuple[str, str]:
    if runs is not None:
        return judged(runs)
    if waits_for := first_fit(WAITS, name):
        return f"waits for {waits_for}", ""
    if why := first_fit(NOT_RUN, name):
        return "not run", why
    return "not listed", "add it to a list of this script"


def tests_in(file: pathlib.Path, only: str) -> Iterator[unittest.TestCase]:
    sys.path.insert(0, str(file.parent))
    module = importlib.import_module(file.stem)
    loader: Callable[[Any], unittest.TestSuite] = unittest.defaultTestLoader.loadTestsFromModule
    yield from tests_of(loader(module), only)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("files", nargs="*", default=list(FILES), metavar="FILE", help=f"default: {' '.join(FILES)}")
    parser.add_argument("--only", default="", metavar="TEXT", help="tests whose name has that text")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all outcomes of every test there")
    options = parser.parse_args()
    os.environ["FXOPT"] = str(pathlib.Path(program_of(options)).resolve())
    swap = Swap()
    counts: collections.Counter[str] = collections.Counter()
    report = {}
    print("| test | verdict | why |\n|---|---|---|")
    for name in options.files:
        tests = list(tests_in(options.folder.resolve() / name, options.only))
        chosen = [test for test in tests if type(test).__name__ in RUN]
        ended = {who: swap.run(who, chosen) for who in WHO}
        for test in map(name_of, tests):
            runs = {who: ended[who][test] for who in WHO} if test in ended["titan"] else None
            verdict, why = verdict_of(test, runs)
            counts[verdict] += 1
            report[test] = {"verdict": verdict, "why": why, "runs": runs}
            print(f"| {test} | {verdict} | {shown(why)} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"\n{counts.total()} tests: {counted(counts)}")
    is_reached = any(record["runs"] and record["runs"]["fxopt"]["calls"] for record in report.values())
    if not is_reached:
        print(f"no test called {PASS}")
    return int(counts["failed"] > 0 or counts["not listed"] > 0 or not is_reached)


if __name__ == "__main__":
    sys.exit(main())
