"""The changes that scripts/titan makes to a graph around a pass, and the counts of its suite.
Skipped without torch."""

from __future__ import annotations

import sys
import unittest

from setting import SCRIPTS, imports_torch

sys.path.insert(0, str(SCRIPTS / "titan"))

with imports_torch():
    import stand_ins
    import titan_suite
    import torch
    from fxopt import tool
    from torch.fx import Graph, GraphModule

aten = torch.ops.aten


def graph_of(*calls):
    """A graph on placeholders x and y. Each call is (name, target, args, kwargs). An argument that
    is the name of a node stands for the node."""
    graph = Graph()
    nodes = {name: graph.placeholder(name) for name in "xy"}

    def named(arg):
        return nodes.get(arg, arg) if isinstance(arg, str) else arg

    for name, target, args, kwargs in calls:
        given = {key: named(arg) for key, arg in kwargs.items()}
        nodes[name] = graph.create_node("call_function", target, tuple(map(named, args)), given, name=name)
    graph.output(nodes[calls[-1][0]])
    return GraphModule(torch.nn.Module(), graph), nodes


class WellFormed(unittest.TestCase):
    def test_cuts_what_the_schema_has_no_place_for(self):
        gm, nodes = graph_of(("r", aten.relu.default, ["x", "y"], {}), ("a", aten.add.Tensor, ["r", "y"], {"const": "y"}))
        with stand_ins.well_formed(gm) as changed:
            self.assertEqual(changed, ["r", "a"])
            self.assertEqual(nodes["r"].args, (nodes["x"],))
            self.assertEqual(nodes["a"].kwargs, {})
        self.assertEqual(nodes["r"].args, (nodes["x"], nodes["y"]))
        self.assertEqual(nodes["a"].kwargs, {"const": nodes["y"]})

    def test_fills_in_what_is_missing(self):
        scatter = torch.ops._c10d_functional.reduce_scatter_tensor.default
        gm, nodes = graph_of(("s", scatter, ["x", "sum"], {}))
        with stand_ins.well_formed(gm) as changed:
            self.assertEqual(changed, ["s"])
            self.assertEqual(nodes["s"].args, (nodes["x"], "sum", 1, "0"))
        self.assertEqual(nodes["s"].args, (nodes["x"], "sum"))

    def test_leaves_calls_that_fit(self):
        gm, _ = graph_of(("a", aten.add.Tensor, ["x", "y"], {"alpha": 2}), ("s", aten.slice.Tensor, ["a"], {}))
        with stand_ins.well_formed(gm) as changed:
            self.assertEqual(changed, [])

    def test_keeps_what_a_pass_rewired(self):
        gm, nodes = graph_of(("n", aten.neg.default, ["x"], {}), ("r", aten.relu.default, ["n", "y"], {}))
        with stand_ins.well_formed(gm):
            nodes["n"].replace_all_uses_with(nodes["x"])
            gm.graph.erase_node(nodes["n"])
        self.assertEqual(nodes["r"].args, (nodes["x"], nodes["y"]))


class Pipelines(unittest.TestCase):
    def test_saved_ops_are_listed_in_order(self):
        pipeline = stand_ins.sac_pipeline({aten.relu.default, aten.mm.default})
        self.assertEqual(
            pipeline, 'sac{recompute-every=0,recompute-matmuls-of="",save-ops="aten.mm.default,aten.relu.default"}'
        )

    def test_unknown_policy_is_refused(self):
        gm, _ = graph_of(("n", aten.neg.default, ["x"], {}))
        with self.assertRaisesRegex(NotImplementedError, "policy"):
            stand_ins.tag(gm, lambda node: None, None)

    @unittest.skipUnless(tool.find_fxopt(), "no fxopt program")
    def test_every_pipeline_is_understood(self):
        for pipeline in [*stand_ins.PIPELINES.values(), stand_ins.sac_pipeline(None)]:
            gm, nodes = graph_of(("v", aten.view.default, ["x", [4]], {}), ("n", aten.neg.default, ["v"], {}))
            stand_ins.run_fxopt(gm, pipeline)
            self.assertIs(next(n for n in gm.graph.nodes if n.name == "n"), nodes["n"])

    @unittest.skipUnless(tool.find_fxopt(), "no fxopt program")
    def test_node_that_stays_takes_a_new_target(self):
        gm, nodes = graph_of(("v", aten.view.default, ["x", [4]], {}), ("n", aten.neg.default, ["v"], {}))
        stand_ins.run_fxopt(gm, "canonicalize{rules=reshapes}")
        self.assertIs(nodes["v"].target, aten.reshape.default)
        self.assertIs(nodes["n"].args[0], nodes["v"])


class Counting(unittest.TestCase):
    def report(self, **outcomes):
        tests = {
            f"file.py::T::{name}": {"class": "T", "outcome": outcome, "message": "", "passes": passes, "trimmed": []}
            for name, (outcome, passes) in outcomes.items()
        }
        return {"collected": {"T": len(tests)}, "tests": tests}

    def test_only_what_the_control_fails_is_evidence(self):
        titan = self.report(a=("passed", ["p"]), b=("passed", ["p"]), c=("failed", ["p"]), d=("passed", []))
        control = self.report(a=("failed", ["p"]), b=("passed", ["p"]), c=("failed", ["p"]), d=("passed", []))
        fxopt = self.report(a=("passed", ["p"]), b=("failed", ["p"]), c=("passed", ["p"]), d=("passed", []))
        row = titan_suite.make_row("T", "dce", titan, control, fxopt)
        self.assertEqual((row.tests, row.titan, row.evidence), (4, ["a", "b", "d"], ["a"]))
        self.assertEqual((row.fxopt, row.unasked), (["a"], ["d"]))


if __name__ == "__main__":
    unittest.main()
