"""The programs of reported_programs.py, executed before and after every exact pass and the
pipelines of README. Everything that the caller sees must equal the results of eager execution to
the bit. Skipped without torch or the fxopt program.

    tests/scripts/known_bugs_test.py --table
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
import unittest
from collections.abc import Sequence
from dataclasses import dataclass, field

from setting import imports_torch, need_program

with imports_torch():
    import remat_sides
    import reported_programs
    import torch
    from differential_parts import observe, pipelines
    from differential_parts.optimize import Optimizer, copy_of
    from differential_parts.programs import Program, is_random, op_name, writes
    from functorch.compile import aot_function, default_partition, make_boxed_func
    from fxopt import bridge
    from fxopt.tool import find_fxopt
    from fxopt_program import Fxopt
    from reported_programs import PROGRAMS, Reported
    from torch.fx import GraphModule, Node
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils.checkpoint import CheckpointPolicy
need_program()

FXOPT = find_fxopt()
ALONE = tuple(item.name for item in pipelines.known_passes(FXOPT) if item.name not in pipelines.FOR_JOINT)
PIPELINES = tuple(dict.fromkeys(ALONE + pipelines.README))
REMAT = "remat,dce"
JOINT_ROUTES = {True: "joint, writes in the graph", False: "joint, writes after it"}
TAGGED = ("tagged", "marked")
VARIANTS = ("untagged", *TAGGED)
HIDDEN_WRITES = ("native_batch_norm",)  # the schema declares no write of the running statistics


def setUpModule():
    unittest.addModuleCleanup(torch.set_num_threads, torch.get_num_threads())
    unittest.addModuleCleanup(torch.set_rng_state, torch.get_rng_state())
    torch.set_num_threads(1)


# ---- one program as a graph


def trace(reported: Reported) -> tuple[GraphModule, set[Node]]:
    """The step as one graph, and its backward nodes."""
    torch.fx.traceback.current_meta.clear()
    reported_programs.backward.names.clear()
    with torch.fx.traceback.preserve_node_meta():
        inputs = reported.inputs(asking=True)
        graph_module = make_fx(reported.step, tracing_mode="fake", _allow_non_fake_inputs=True)(*inputs)
    torch.fx.traceback.current_meta.clear()
    names = reported_programs.backward.names
    return graph_module, {node for node in graph_module.graph.nodes if node.name in names}


def mark(graph_module: GraphModule, backward: set[Node], variant: str, tag: CheckpointPolicy | None) -> None:
    """Tags the calls of forward, and in the variant "marked" also marks the backward nodes. The
    variant "untagged" has neither. tag: for all of these calls. None prefers to recompute them,
    and saves those that write or draw."""
    for node in graph_module.graph.nodes:
        for key in ("recompute", "ac_graph_id"):
            node.meta.pop(key, None)
        if node.op != "call_function":
            continue
        if node in backward:
            node.meta.update({"autograd_backward": True} if variant == "marked" else {})
        elif variant != "untagged":
            node.meta["recompute"] = tag or careful_tag(node)


def careful_tag(node: Node) -> CheckpointPolicy:
    is_unrepeatable = writes(node) or is_random(node) or op_name(node) in HIDDEN_WRITES
    return CheckpointPolicy.MUST_SAVE if is_unrepeatable else CheckpointPolicy.PREFER_RECOMPUTE


def subject(reported: Reported, variant: str, tag: CheckpointPolicy | None = None) -> Program:
    graph_module, backward = trace(reported)
    mark(graph_module, backward, variant, tag)
    return Program(graph_module, reported.inputs, told={"kind": "forward_loss_backward"})


def seen_eagerly(reported: Reported) -> observe.Seen:
    return observe.execute(reported.step, reported.inputs(asking=True), {})


def seen_of(program: Program, graph_module: GraphModule) -> observe.Seen:
    attributes = observe.attributes_of(graph_module)
    with observe.kept(attributes):
        return observe.execute(graph_module, program.inputs(), attributes)


def visible(eager: observe.Seen, after: observe.Seen) -> list[str]:
    """Differences that a caller can see. Constants of the trace are internal."""
    return [line for line in observe.differences(eager, after) if not line.startswith("attribute ")]


def copied_ops(graph_module: GraphModule) -> list[str]:
    return [op_name(node) for node in graph_module.graph.nodes if node.name.rstrip("_0123456789").endswith("_recomputed")]


@dataclass
class Row:
    """The results of one program on one route."""

    runs: int = 0
    changed: int = 0
    recomputed: int = 0  # by remat,dce of the tagged graph
    wrong: list[str] = field(default_factory=list)


def judge_step(reported: Reported, folder: pathlib.Path) -> Row:
    """Runs every pipeline on the graph of the whole step."""
    row, eager = Row(), seen_eagerly(reported)
    for variant in VARIANTS:
        program = subject(reported, variant)
        row.wrong += [f"{variant}, as traced: {line}" for line in visible(eager, seen_of(program, program.graph_module))]
        optimizer = Optimizer.of(program, FXOPT, folder)
        for passes in PIPELINES:
            result = optimizer.run(passes)
            row.runs, row.changed = row.runs + 1, row.changed + any(result.changed.values())
            row.wrong += [f"{variant}, {passes}: {line}" for line in visible(eager, seen_of(program, result.graph_module))]
            if variant in TAGGED and "remat" in passes:
                row.wrong += [f"{variant}, {passes}: {line}" for line in wrong_copies(reported, result.graph_module)]
            if (variant, passes) == ("tagged", REMAT):
                row.recomputed = result.recomputed
    return row


def wrong_copies(reported: Reported, graph_module: GraphModule) -> list[str]:
    """Operators that had to be recomputed but were not, and the reverse."""
    found = copied_ops(graph_module)
    lines = [f"{name} is not recomputed" for name in reported.copied if name not in found]
    return lines + [f"{name} is recomputed" for name in reported.kept if name in found]


# ---- the same program through AOTAutograd, with fxopt in front of its partitioner


class Joint:
    """forward compiled by AOTAutograd, with its joint graph tagged and put through a pipeline.
    None: through no pipeline. Writes to inputs are in the graph, as Inductor asks, or left to
    AOTAutograd's runtime."""

    def __init__(self, reported: Reported, passes: str | None, *, writes_kept: bool) -> None:
        self.reported, self.passes = reported, passes
        self.recomputed = 0
        boxed = lambda graph_module, _: make_boxed_func(graph_module.forward)  # noqa: E731
        told = {"fw_compiler": boxed, "bw_compiler": boxed, "partition_fn": self._partition}
        self.compiled = aot_function(reported.forward, **told, keep_inference_input_mutations=writes_kept)

    def __call__(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.reported.run(self.compiled, inputs)

    def _partition(self, joint: GraphModule, inputs: object, **options: object) -> tuple[GraphModule, GraphModule]:
        backward = {node for node in joint.graph.nodes if node.meta.get("partitioner_tag") == "is_backward"}
        mark(joint, backward, "tagged", None)
        if self.passes is not None:
            bridge.apply(joint, self.passes, kind="joint")
        self.recomputed = len(copied_ops(joint))
        for node in joint.graph.nodes:
            node.meta.pop("recompute", None)  # the partitioner would interpret the tags
        return default_partition(joint, inputs, **options)


def seen_jointly(joint: Joint) -> observe.Seen:
    torch.fx.traceback.current_meta.clear()
    return observe.execute(joint, joint.reported.inputs(asking=True), {})


def judge_joint(reported: Reported, *, writes_kept: bool, among: Sequence[str] = PIPELINES) -> Row:
    """Runs these pipelines on the joint graph. Differences between AOTAutograd alone and eager
    execution do not count."""
    row, eager = Row(), seen_eagerly(reported)
    known = visible(eager, seen_jointly(Joint(reported, None, writes_kept=writes_kept)))
    for passes in among:
        joint = Joint(reported, passes, writes_kept=writes_kept)
        lines = visible(eager, seen_jointly(joint))
        row.wrong += [f"{passes}: {line}" for line in lines if line not in known]
        row.runs, row.changed = row.runs + 1, row.changed + bool(joint.recomputed)
        row.recomputed = joint.recomputed if passes == REMAT else row.recomputed
    if REMAT in among and row.recomputed == 0:
        row.wrong.append("nothing is recomputed")
    return row


# ---- tests


def by_torch(reported: Reported) -> str:
    """The outcome of PyTorch's own pass on the tagged and marked graph, in short."""
    program = subject(reported, "marked")
    try:
        result = remat_sides.torch_remat(copy_of(program.graph_module))
        lines = visible(seen_eagerly(reported), seen_of(program, result))
    except RuntimeError as error:
        return f"refuses: {str(error)[:40]}"
    return f"wrong: {lines[0]}" if lines else f"equal, {len(copied_ops(result))} copies"


class Steps(unittest.TestCase):
    def test_what_the_caller_sees_is_what_eager_execution_gives(self):
        for reported in PROGRAMS:
            with self.subTest(reported.name), tempfile.TemporaryDirectory() as folder:
                row = judge_step(reported, pathlib.Path(folder))
                self.assertEqual(row.wrong, [])
                self.assertGreater(row.recomputed, 0)

    def test_tags_on_what_writes_and_draws_are_refused_or_change_nothing(self):
        for reported in PROGRAMS:
            for tag in (CheckpointPolicy.PREFER_RECOMPUTE, CheckpointPolicy.MUST_RECOMPUTE):
                with self.subTest(reported.name, tag=tag):
                    program = subject(reported, "marked", tag)
                    try:
                        bridge.apply(program.graph_module, REMAT, **program.told)
                    except bridge.FxoptError as error:
                        self.assertEqual((error.exit_code, error.code), (4, "FX0411"))
                        self.assertTrue(any(f"'%{name}" in str(error) for name in reported.kept), str(error))
                        continue
                    self.assertEqual(visible(seen_eagerly(reported), seen_of(program, program.graph_module)), [])


class Joints(unittest.TestCase):
    def check(self, *, writes_inputs: bool, among: Sequence[str] = PIPELINES) -> None:
        for reported in PROGRAMS:
            for writes_kept, route in JOINT_ROUTES.items() if reported.joint and bool(reported.state) == writes_inputs else ():
                with self.subTest(reported.name, route=route):
                    self.assertEqual(judge_joint(reported, writes_kept=writes_kept, among=among).wrong, [])

    def test_what_the_caller_sees_is_what_eager_execution_gives(self):
        self.check(writes_inputs=False)

    def test_likewise_where_inputs_are_written_without_remat(self):
        self.check(writes_inputs=True, among=[passes for passes in PIPELINES if "remat" not in passes])

    def test_remat_reads_no_input_that_was_written_in_between(self):
        """The caller of the two halves of a joint graph writes inputs between them, regardless of
        the place of the write in the graph."""
        self.check(writes_inputs=True, among=[passes for passes in PIPELINES if "remat" in passes])


class Memory(unittest.TestCase):
    def peak(self, reported: Reported, passes: str) -> int:
        """The peak of the step with the values between blocks saved and the blocks recomputed."""
        program = subject(reported, "tagged")
        for node in program.graph_module.graph.nodes:
            if op_name(node) in ("add", "sin", "sum") and "recompute" in node.meta:
                node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.pb"
            bridge.apply(program.graph_module, passes, **program.told)
            bridge.save(program.graph_module, path, **program.told)
            return Fxopt(FXOPT).peaks(path)["cpu"][0]

    def test_blocks_that_are_passed_twice_hold_one_working_set(self):
        shared, own = reported_programs.SHARED_BLOCKS, reported_programs.OWN_BLOCKS
        self.assertLess(self.peak(shared, "canonicalize,remat,dce"), self.peak(shared, "canonicalize"))
        self.assertLessEqual(self.peak(shared, "canonicalize,remat,dce"), self.peak(own, "canonicalize,remat,dce"))


def print_table() -> None:
    rows = [("program", "threads", "route", "pipelines", "changed", "recomputed", "wrong", "PyTorch's remat")]
    for reported in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(_cells(reported, "step", judge_step(reported, pathlib.Path(folder)), by_torch(reported)))
        for writes_kept, route in JOINT_ROUTES.items() if reported.joint else ():
            rows.append(_cells(reported, route, judge_joint(reported, writes_kept=writes_kept), ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _cells(reported: Reported, route: str, row: Row, theirs: str) -> tuple[str, ...]:
    for line in row.wrong:
        print(f"{reported.name}, {route}: {line}", file=sys.stderr)
    counts = (row.runs, row.changed, row.recomputed, len(row.wrong))
    return (reported.name, reported.threads, route, *map(str, counts), theirs)


if __name__ == "__main__":
    if "--table" in sys.argv:
        torch.set_num_threads(1)
        print_table()
    else:
        unittest.main()
