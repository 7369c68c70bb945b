"""scripts/peers/memory.py: its replay and its verdicts. Skipped without torch or the fxopt
program."""

from __future__ import annotations

import argparse
import contextlib
import io
import unittest
from unittest import mock

from setting import TESTDATA, InFolder, imports_torch, need_program

with imports_torch():
    import estimators
    import memory
    import torch
    from bound_values import BoundError, BoundGraph, symbols
    from fxopt import bridge
    from fxopt_program import Fxopt, Requested
    from peak_counter import Peak, Replay, Storage, replay
    from small_graphs import built, trace
    from torch._subclasses import FakeTensorMode
    from torch.fx import Graph, GraphModule
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
need_program()

aten = torch.ops.aten
c10d = torch.ops._c10d_functional


def lifetimes(graph_module, **told):
    """The (first, last) positions of each node's results."""
    return {s.node: (s.first, s.last) for s in replay(BoundGraph(graph_module), **told).storages}


class TheConclusion(unittest.TestCase):
    def test_exceptions_come_in_the_order_of_the_graphs(self):
        names = [f"graph{i}" for i in (3, 1, 4, 0, 2)]
        shown = io.StringIO()
        with mock.patch.object(memory, "EXCEPTIONS", {name: (8, "of a test") for name in sorted(names)}):
            with contextlib.redirect_stdout(shown):
                self.assertEqual(memory.conclude({name: [] for name in names}, is_planted=False), 0)
        told = [line.split()[1].rstrip(",") for line in shown.getvalue().splitlines() if line.startswith("exception")]
        self.assertEqual(told, names)


class TheReplay(unittest.TestCase):
    def test_a_value_lives_from_its_node_to_its_last_reader_and_outputs_to_the_end(self):
        graph_module = built(
            (aten.neg.default, lambda x: (x,)),
            (aten.exp.default, lambda x, a: (a,)),
            (aten.add.Tensor, lambda x, a, b: (a, b)),
            (aten.neg.default, lambda x, a, b, c: (c,)),
        )
        found = lifetimes(graph_module)
        self.assertEqual((found["neg"], found["exp"]), ((1, 3), (2, 3)))
        self.assertEqual(found["neg_1"], (4, 5))
        self.assertEqual(found["x"], (0, 5))

    def test_the_peak_names_the_first_node_that_reaches_it(self):
        graph_module = built((aten.neg.default, lambda x: (x,)), (aten.neg.default, lambda x, a: (a,)))
        peak = replay(BoundGraph(graph_module)).peaks["cpu"]
        self.assertEqual((peak.bytes, peak.node, peak.storages), (48, "neg_1", 3))

    def test_a_value_that_nobody_reads_dies_at_once(self):
        graph_module = built((aten.neg.default, lambda x: (x,)), (aten.exp.default, lambda x, a: (x,)))
        self.assertEqual(lifetimes(graph_module)["neg"], (1, 1))

    def test_views_hold_the_storage_of_their_base(self):
        graph_module = built(
            (aten.neg.default, lambda x: (x,)),
            (aten.view.default, lambda x, a: (a, [2, 2])),
            (aten.exp.default, lambda x, a, b: (x,)),
            (aten.exp.default, lambda x, a, b, c: (b,)),
        )
        found = lifetimes(graph_module)
        self.assertEqual(found["neg"], (1, 4))
        self.assertNotIn("view", found)

    def test_a_donated_input_dies_after_its_last_reader(self):
        graph_module = built((aten.neg.default, lambda x: (x,)), (aten.neg.default, lambda x, a: (a,)))
        self.assertEqual(lifetimes(graph_module)["x"], (0, 3))
        self.assertEqual(lifetimes(graph_module, donated=["x"])["x"], (0, 1))

    def test_a_collective_holds_what_it_reads_and_gives_until_its_wait(self):
        graph_module = built(
            (aten.neg.default, lambda x: (x,)),
            (c10d.all_gather_into_tensor.default, lambda x, a: (a, 2, "0")),
            (aten.exp.default, lambda x, a, b: (x,)),
            (c10d.wait_tensor.default, lambda x, a, b, c: (b,)),
            (aten.exp.default, lambda x, a, b, c, d: (d,)),
        )
        found = lifetimes(graph_module)
        self.assertEqual(found["neg"], (1, 4))
        self.assertEqual(found["all_gather_into_tensor"], (2, 5))
        self.assertNotIn("wait_tensor", found)

    def test_a_collective_without_a_wait_holds_nothing_longer(self):
        graph_module = built(
            (aten.neg.default, lambda x: (x,)),
            (c10d.all_gather_into_tensor.default, lambda x, a: (a, 2, "0")),
            (aten.exp.default, lambda x, a, b: (x,)),
        )
        self.assertEqual(lifetimes(graph_module)["neg"], (1, 2))

    def test_tensors_of_two_devices_are_counted_apart(self):
        graph_module = built((aten._to_copy.default, lambda x: (x,)), device="cuda")
        graph_module.graph.find_nodes(op="call_function", target=aten._to_copy.default)[0].kwargs = {"device": torch.device("cpu")}
        peaks = replay(BoundGraph(graph_module)).peaks
        self.assertEqual({device: peak.bytes for device, peak in peaks.items()}, {"cuda:0": 16, "cpu": 16})

    @unittest.skipUnless(torch.__version__ >= "2.12", f"torch {torch.__version__} cannot run control_deps")
    def test_control_deps_reads_what_it_depends_on(self):
        from torch._inductor.fx_passes.control_dependencies import control_deps

        graph = Graph()
        x = graph.placeholder("x")
        with FakeTensorMode():
            x.meta["val"] = torch.empty(4)
        neg = graph.call_function(aten.neg.default, (x,))
        exp = graph.call_function(aten.exp.default, (x,))
        body = graph.get_attr("body")
        ordered = graph.create_node("call_function", control_deps, ((neg,), body, exp), {}, name="ordered")
        graph.output((ordered,))
        inner = GraphModule({}, built((aten.exp.default, lambda y: (y,))).graph)
        found = lifetimes(GraphModule({"body": inner}, graph))
        self.assertEqual((found["neg_default"], found["exp_default"]), ((1, 4), (2, 4)))

    def test_a_call_that_fails_is_named(self):
        graph_module = built((aten.mm.default, lambda x: (x, 2)))
        with self.assertRaisesRegex(BoundError, "node mm "):
            replay(BoundGraph(graph_module))

    def test_a_placeholder_without_a_value_is_named(self):
        graph_module = built((aten.neg.default, lambda x: (x,)))
        del graph_module.graph.find_nodes(op="placeholder")[0].meta["val"]
        with self.assertRaisesRegex(BoundError, "placeholder x has no value"):
            replay(BoundGraph(graph_module))

    def test_each_storage_at_the_peak_is_listed(self):
        graph_module = built((aten.neg.default, lambda x: (x,)), (aten.neg.default, lambda x, a: (a,)))
        result = replay(BoundGraph(graph_module))
        self.assertEqual(sorted(s.node for s in result.live("cpu")), ["neg", "neg_1", "x"])


class StatedSizes(unittest.TestCase):
    def symbolic(self):
        return make_fx(lambda x: (x * 2).view(-1), tracing_mode="symbolic")(torch.empty(3, 5))

    def data_dependent(self):
        mode = FakeTensorMode(shape_env=ShapeEnv(allow_dynamic_output_shape_ops=True, allow_scalar_outputs=True))
        return trace(lambda x: x.nonzero() * 2, (8,), mode=mode)

    def test_symbols_take_the_stated_value_else_their_hint(self):
        graph_module = self.symbolic()
        first, second = symbols(graph_module)
        self.assertEqual(symbols(graph_module), {first: 3, second: 5})
        self.assertEqual(replay(BoundGraph(graph_module)).peaks["cpu"].bytes, 2 * 3 * 5 * 4)
        self.assertEqual(replay(BoundGraph(graph_module, {first: 7})).peaks["cpu"].bytes, 2 * 7 * 5 * 4)

    def test_sizes_that_depend_on_data_are_those_stated(self):
        graph_module = self.data_dependent()
        ((symbol, hint),) = symbols(graph_module).items()
        self.assertIsNone(hint)
        self.assertEqual(replay(BoundGraph(graph_module, {symbol: 6})).peaks["cpu"].bytes, 8 * 4 + 2 * 6 * 8)

    def test_a_symbol_without_a_value_is_named(self):
        graph_module = self.data_dependent()
        (symbol,) = symbols(graph_module)
        with self.assertRaisesRegex(BoundError, f"no value for the symbol {symbol}"):
            replay(BoundGraph(graph_module))

    def test_a_graph_of_unstated_sizes_is_refused(self):
        with self.assertRaisesRegex(ValueError, "UNBACKED has no value"):
            memory.stated_sizes("other", self.data_dependent())
        self.assertEqual(set(memory.stated_sizes("deepseek16b", self.data_dependent()).values()), {6144})

    def test_inputs_that_share_a_storage_share_one(self):
        graph_module = trace(lambda x, y: x + y, (4,), (4,))
        one, other = graph_module.graph.find_nodes(op="placeholder")
        other.meta["val"] = one.meta["val"]
        self.assertEqual(replay(BoundGraph(graph_module)).peaks["cpu"].bytes, 2 * 16)


class TheJudge(InFolder):
    def setUp(self):
        super().setUp()
        self.fxopt = Fxopt(None)

    def judge(self, graph_module, **flags):
        path = self.folder / "step.pb"
        bridge.save(graph_module, path)
        options = argparse.Namespace(**{"no_peers": False, "plant": False} | flags)
        return memory.judge(path, self.fxopt, options)

    def step(self, device="cpu"):
        def function(x, w):
            hidden = (x @ w).relu()
            return hidden.sum(), hidden.t() @ x

        return trace(function, (4, 8), (8, 16), device=device)

    def test_equal_bytes_at_the_same_node_hold_on_a_cpu_and_on_cuda(self):
        for device in ("cpu", "cuda:0"):
            result = self.judge(self.step(device))
            self.assertEqual(result["failed"], [])
            ((name, where, sizes, counted, node, ours, tracker, inductor),) = result["rows"]
            self.assertEqual((name, where, sizes), ("step", device, "-"))
            self.assertEqual(ours, f"{counted} (1.0000)")
            self.assertGreaterEqual(int(tracker.split()[0]), int(counted))
            self.assertEqual(inductor, "-" if device == "cpu" else f"{counted} (1.0000)")

    def test_symbols_are_bound_alike_on_both_sides(self):
        result = self.judge(make_fx(lambda x: (x * 2).sum(0), tracing_mode="symbolic")(torch.empty(3, 5)), no_peers=True)
        self.assertEqual(result["failed"], [])
        self.assertIn(" = 3", result["rows"][0][2])

    def test_a_planted_element_is_seen(self):
        for device in ("cpu", "cuda:0"):
            (first, *_) = self.judge(self.step(device), plant=True, no_peers=True)["failed"]
            self.assertIn(f"step, {device}: replay ", first)

    def difference(self, name, ours):
        storages = [Storage("a", "cuda:0", 100, 0, 3)]
        return memory.difference(name, Replay({"cuda:0": Peak(100, "a", 1, 1)}, storages), "cuda:0", ours)

    def test_a_difference_of_one_byte_or_of_the_node_fails(self):
        self.assertEqual(self.difference("g", Requested([(100, "a")], [], [])), [])
        self.assertTrue(self.difference("g", Requested([(101, "a")], [], [])))
        self.assertTrue(self.difference("g", Requested([(100, "b")], [], [])))
        self.assertTrue(self.difference("g", Requested([(100, "a"), (101, "a")], [], [])))
        self.assertIn("fxopt knows nothing", self.difference("g", None)[0])

    def test_a_difference_tells_what_is_live_on_one_side_alone(self):
        lines = self.difference("g", Requested([(90, "a")], [("a", 60), ("b", 30)], ["c"]))
        self.assertIn("  live at the peak only in the replay: %a (100)", lines)
        self.assertIn("  live at the peak only in fxopt: %a (60), %b (30)", lines)
        self.assertIn("  fxopt knows no size for 1 storages: %c", lines)

    def test_an_exception_holds_for_exactly_its_bytes(self):
        with mock.patch.dict(memory.EXCEPTIONS, {"known": (-10, "a reason")}):
            self.assertEqual(self.difference("known", Requested([(90, "a")], [], [])), [])
            for size in (89, 91, 100):
                lines = self.difference("known", Requested([(size, "a")], [], []))
                self.assertIn("  an exception is committed for -10 bytes: a reason", lines)

    def test_there_are_at_most_three_exceptions_each_with_a_reason(self):
        self.assertLessEqual(len(memory.EXCEPTIONS), 3)
        for size, reason in memory.EXCEPTIONS.values():
            self.assertTrue(size != 0 and len(reason) > 40)

    def test_donated_inputs_are_those_the_file_names(self):
        nodes = [{"name": "x", "input": {"donated": True}}, {"name": "y", "input": {}}, {"name": "z"}]
        self.assertEqual(memory.donated({"graphs": [{"nodes": nodes}]}), {"x"})

    def test_an_object_known_by_type_alone_becomes_none(self):
        value = {"tuple": {"items": [{"opaque": {"type": "DeviceMesh"}}, {"opaque": {"type": "DeviceMesh", "mesh": "m"}}]}}
        memory.forget_bare_objects(value)
        self.assertEqual(value["tuple"]["items"], [{"none": True}, {"opaque": {"type": "DeviceMesh", "mesh": "m"}}])

    def test_an_estimator_that_fails_is_quoted(self):
        with mock.patch.object(estimators, "inductor", side_effect=TypeError("a | b\nc")):
            found = memory.peers(self.step(), {})
        self.assertEqual(found["inductor"], "TypeError: a / b c")

    def test_every_graph_of_testdata_is_found_and_unknown_names_are_refused(self):
        found = memory.find_graphs(TESTDATA, [])
        self.assertGreater(len(found), 30)
        self.assertEqual(len({memory.name_of(path) for path in found}), len(found))
        with self.assertRaisesRegex(ValueError, "is called nothing"):
            memory.find_graphs(TESTDATA, ["nothing"])

    def run_main(self, *arguments):
        self.step()  # imports of make_fx do not belong to the table
        bridge.save(self.step(), self.folder / "step.pb")
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            code = memory.main(["--folder", str(self.folder), *arguments])
        return code, out.getvalue()

    def test_the_command_prints_a_table_and_exits_with_what_it_found(self):
        code, text = self.run_main()
        self.assertEqual(code, 0)
        self.assertIn("| step | cpu | - |", text)
        self.assertIn("all 1 graphs hold", text)
        code, text = self.run_main("--plant", "--no-peers")
        self.assertEqual(code, 1)
        self.assertIn("every planted element is seen", text)


if __name__ == "__main__":
    unittest.main()
