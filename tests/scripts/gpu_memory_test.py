"""scripts/peers/gpu_memory.py over stand-ins for a GPU. Skipped without torch or the fxopt
program."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import types
import unittest
from unittest import mock

from setting import InFolder, imports_torch, need_program

with imports_torch():
    import cuda_meter
    import device_inputs
    import gpu_memory
    import memory_runs
    import torch
    import workspaces
    from bound_values import BoundGraph
    from cuda_meter import CudaMeter, Event, FakeMeter
    from fxopt import bridge
    from peak_counter import replay
    from small_graphs import built, trace
    from torch._subclasses import FakeTensorMode
    from torch.fx import Graph, GraphModule
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from workspaces import Bill
need_program()

aten = torch.ops.aten
c10d = torch.ops._c10d_functional


class Bills(unittest.TestCase):
    def assign(self, counts, addresses, events):
        graph_module = built(*[(aten.neg.default, lambda x, *rest: (x,))] * len(counts))
        nodes = [node for node in graph_module.graph.nodes if node.op == "call_function"]
        return workspaces.assign(nodes, counts, addresses, events)

    def test_what_a_node_gives_is_its_result_and_the_rest_is_hidden(self):
        events = [Event(True, 1, 100), Event(True, 2, 30), Event(False, 2, 30)]
        (bill,) = self.assign([(2, 1)], [[1]], events)
        self.assertEqual((bill.results, bill.hidden, bill.peak, bill.beside), ([100], [30], 130, 30))

    def test_of_two_allocations_at_one_address_the_last_is_the_result(self):
        events = [Event(True, 1, 30), Event(False, 1, 30), Event(True, 1, 20)]
        (bill,) = self.assign([(2, 1)], [[1]], events)
        self.assertEqual((bill.results, bill.hidden, bill.peak, bill.beside), ([20], [30], 30, 10))

    def test_frees_after_a_call_do_not_lower_the_next_nodes_peak(self):
        events = [Event(True, 1, 100), Event(True, 2, 50), Event(False, 1, 100), Event(True, 3, 8)]
        first, second, third = self.assign([(1, 0), (2, 0), (3, 1)], [[1], [2], [3]], events)
        self.assertEqual((first.results, second.results, third.results), ([100], [50], [8]))
        self.assertEqual(third.peak, 8)

    def test_a_view_allocates_nothing(self):
        first, second = self.assign([(1, 0), (1, 0)], [[1], [1]], [Event(True, 1, 100)])
        self.assertEqual((first.results, second.results, second.hidden), ([100], [], []))

    def test_operators_are_listed_with_the_most_they_took(self):
        bills = [Bill("a", "mm", [10], [4], 14), Bill("b", "mm", [10], [6], 16), Bill("c", "add", [10], [], 10)]
        self.assertEqual(workspaces.by_operator(bills), {"mm": {"nodes": 2, "peak_bytes": 6, "at": "b", "sizes": [6]}})

    def test_what_only_the_first_run_takes_is_kept_apart(self):
        first = [Bill("a", "mm", [10], [32, 4], 46), Bill("b", "mm", [10], [4], 14)]
        second = [Bill("a", "mm", [10], [4], 14), Bill("b", "mm", [10], [4], 14)]
        (left,) = workspaces.only_first(first, second)
        self.assertEqual((left.node, left.hidden), ("a", [32]))

    def test_the_first_difference_names_the_node(self):
        bills = [Bill("a", "mm", [10, 2], [], 12), Bill("b", "mm", [10], [4], 14), Bill("c", "add", [7], [], 7)]
        predicted = {"a": [2, 10], "b": [10], "c": [8]}
        self.assertIn("%b (mm): beside its results [4]", workspaces.first_difference(bills, predicted))
        found = workspaces.first_difference(bills, predicted, is_hidden_expected=True)
        self.assertIn("%c (add): results of [7] bytes, predicted [8]", found)
        self.assertEqual(workspaces.first_difference(bills[:1], predicted), "")


class Meters(unittest.TestCase):
    def run_fake(self, graph_module, workspaces_of=None):
        bound = BoundGraph(graph_module)
        inputs = [bound.given(node) for node in graph_module.graph.find_nodes(op="placeholder")]
        device = torch.device("cuda:0")
        with bound.mode, torch.no_grad(), FakeMeter(device, workspaces_of) as meter:
            for value in inputs:
                meter.hold_all(value)
            return workspaces.bill(graph_module, inputs, meter, bound), meter

    def test_the_stand_in_sees_results_and_frees(self):
        graph_module = built(
            (aten.neg.default, lambda x: (x,)),
            (aten.view.default, lambda x, a: (a, [2, 2])),
            (aten.exp.default, lambda x, a, b: (b,)),
            (aten.exp.default, lambda x, a, b, c: (c,)),
            device="cuda",
        )
        bills, meter = self.run_fake(graph_module)
        self.assertEqual([bill.results for bill in bills], [[16], [], [16], [16]])
        self.assertEqual(meter.peaks(), {"requested": replay(BoundGraph(graph_module)).peaks["cuda:0"].bytes})

    def test_what_an_operator_takes_beside_its_results_is_billed_to_it(self):
        graph_module = built((aten.neg.default, lambda x: (x,)), (aten.exp.default, lambda x, a: (a,)), device="cuda")
        bills, _ = self.run_fake(graph_module, {aten.exp.default: 64})
        self.assertEqual([(bill.hidden, bill.beside) for bill in bills], [([], 0), ([64], 48)])

    def test_a_wait_gives_what_it_waits_for(self):
        graph_module = built(
            (c10d.all_gather_into_tensor.default, lambda x: (x, 2, "0")),
            (c10d.wait_tensor.default, lambda x, a: (a,)),
            device="cuda",
        )
        bills, _ = self.run_fake(graph_module)
        self.assertEqual([bill.results for bill in bills], [[32], []])

    def test_a_trace_is_read_in_order_and_segments_are_left_out(self):
        trace_of_device = [
            {"action": "segment_alloc", "addr": 512, "size": 2097152},
            {"action": "alloc", "addr": 512, "size": 100},
            {"action": "free_requested", "addr": 512, "size": 100},
            {"action": "free_completed", "addr": 512, "size": 100},
        ]
        self.assertEqual(cuda_meter.read_trace(trace_of_device), [Event(True, 512, 100), Event(False, 512, 100)])


class StandInAllocator:
    """The part of torch.cuda that CudaMeter uses, over one list of events."""

    def __init__(self):
        self.trace = []
        self.is_recording = False
        self.allocs = self.frees = self.current = self.peak = 0
        self.memory = types.SimpleNamespace(
            _record_memory_history=self.record, _snapshot=lambda: {"device_traces": [list(self.trace)]}
        )

    def record(self, enabled="all", context=None):
        self.is_recording = enabled is not None
        self.trace.clear() if self.is_recording else None

    def is_available(self):
        return True

    def synchronize(self, device):
        pass

    def empty_cache(self):
        gc.collect()

    def reset_peak_memory_stats(self, device):
        self.peak = self.current

    def memory_stats(self, device):
        peaks = {f"{kind}_bytes.all.peak": self.peak for kind in cuda_meter.PEAKS}
        return peaks | {"allocation.all.allocated": self.allocs, "allocation.all.freed": self.frees}

    def memory_stats_as_nested_dict(self, device):
        return {"allocation": {"all": {"allocated": self.allocs, "freed": self.frees}}}

    def happen(self, is_alloc, address, size):
        self.allocs, self.frees = self.allocs + is_alloc, self.frees + (not is_alloc)
        self.current += size if is_alloc else -size
        self.peak = max(self.peak, self.current)
        if self.is_recording:
            self.trace.append({"action": "alloc" if is_alloc else "free_requested", "addr": address, "size": size})


class Measuring(unittest.TestCase):
    def setUp(self):
        self.cuda = StandInAllocator()
        self.enterContext(mock.patch.object(torch, "cuda", self.cuda))
        self.meter = CudaMeter(torch.device("cuda:0"))

    def run_node_by_node(self):
        """Runs a graph of functions on the stand-in as operators. The second takes a workspace."""
        tensors = {}

        def give(x, workspace):
            result = torch.empty(4)
            address = result.untyped_storage().data_ptr()
            self.cuda.happen(True, address, 16)
            if workspace:
                self.cuda.happen(True, 1, 64)
                self.cuda.happen(False, 1, 64)
            tensors[address] = result
            return result

        graph_module = built((give, lambda x: (x, False)), (give, lambda x, a: (a, True)))
        return workspaces.bill(graph_module, [torch.empty(4)], self.meter)

    def test_allocations_are_billed_to_nodes(self):
        self.cuda.happen(True, 2, 1000)  # before the run
        first, second = self.run_node_by_node()
        self.assertEqual((first.results, first.hidden), ([16], []))
        self.assertEqual((second.results, second.hidden, second.beside), ([16], [64], 64))
        self.meter.stop()
        self.assertFalse(self.cuda.is_recording)

    def test_peaks_count_from_each_step_and_include_what_was_live(self):
        self.cuda.happen(True, 2, 1000)
        sizes = iter((500, 300, 400))

        def step():
            size = next(sizes)
            self.cuda.happen(True, 3, size)
            self.cuda.happen(False, 3, size)

        found = {number: peaks["requested"] for number, peaks in memory_runs.run_steps(step, self.meter, 3)}
        self.assertEqual(found, {1: 1500, 2: 1300, 3: 1400})


class DeviceInputs(unittest.TestCase):
    def limit(self, *calls, dtype=torch.int64):
        graph = Graph()
        index, weight = graph.placeholder("index"), graph.placeholder("weight")
        with FakeTensorMode():
            index.meta["val"] = torch.empty(4, dtype=dtype)
            weight.meta["val"] = torch.empty(11, 3)
        nodes = [index, weight]
        for target, arguments in calls:
            nodes.append(graph.call_function(target, arguments(*nodes)))
        graph.output(nodes[-1])
        bound = BoundGraph(GraphModule({}, graph))
        return device_inputs.index_limit(index, bound), bound

    def test_indices_stay_below_the_rows_they_choose_from(self):
        limit, bound = self.limit((aten.embedding.default, lambda index, weight: (weight, index)))
        self.assertEqual(limit, 11)
        index, _ = device_inputs.make_inputs(bound)
        self.assertTrue(bool((index >= 0).all()) and bool((index < 11).all()))
        self.assertGreater(int(index.max()), 0)

    def test_indices_are_followed_through_views(self):
        limit, _ = self.limit(
            (aten.view.default, lambda index, weight: (index, [2, 2])),
            (aten.embedding.default, lambda index, weight, view: (weight, view)),
        )
        self.assertEqual(limit, 11)

    def test_integers_of_no_known_use_are_zero(self):
        limit, bound = self.limit((aten.add.Tensor, lambda index, weight: (index, 1)))
        self.assertEqual(limit, 1)
        self.assertEqual(int(device_inputs.make_inputs(bound)[0].abs().max()), 0)

    def test_a_graph_runs_with_what_is_made(self):
        def function(tokens, weight):
            return torch.nn.functional.embedding(tokens, weight).sum(), weight.t() @ weight

        with FakeTensorMode():
            arguments = torch.empty(2, 3, dtype=torch.int64), torch.empty(7, 5)
        torch.fx.traceback.current_meta.clear()
        graph_module = make_fx(function, tracing_mode="fake")(*arguments)
        loss, product = bridge.run(graph_module, device_inputs.make_inputs(BoundGraph(graph_module)))
        self.assertTrue(bool(torch.isfinite(loss)) and product.shape == (5, 5))

    def test_placeholders_on_one_storage_get_one_and_strides_are_kept(self):
        graph_module = trace(lambda x, y: x + y, (4, 4), (4, 4))
        one, other = graph_module.graph.find_nodes(op="placeholder")
        other.meta["val"] = one.meta["val"].t()
        first, second = device_inputs.make_inputs(BoundGraph(graph_module))
        self.assertEqual(first.data_ptr(), second.data_ptr())
        self.assertEqual(second.stride(), (1, 4))


class OnAGpu(InFolder):
    def run_main(self, graph_module, *arguments):
        bridge.save(graph_module, self.folder / "step.pb")
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = gpu_memory.main([str(self.folder / "step.pb"), *arguments])
        return code, out.getvalue(), err.getvalue()

    def step(self, device):
        return trace(lambda x, w: ((x @ w).relu().sum(), x * 2), (64, 32), (32, 16), device=device)

    def test_all_but_the_measuring_is_done_without_a_gpu(self):
        code, text, _ = self.run_main(self.step("cuda:0"), "--dry-run", "--json", str(self.folder / "out.json"))
        self.assertEqual(code, 0)
        result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        for segments in ("classic", "expandable"):
            predicted = result["predicted"][segments]["requested"]
            self.assertEqual(result["measured"][segments], {"1": {"requested": predicted}, "3": {"requested": predicted}})
            self.assertIn(f"| {segments} | requested | {predicted} | {predicted} | 1.0000 | {predicted} | 1.0000 |", text)
        self.assertIn("first difference: none", text)

    def test_what_cannot_be_measured_is_skipped_with_the_reason(self):
        code, _, text = self.run_main(self.step("cpu"), "--dry-run")
        self.assertEqual(code, 1)
        self.assertIn("step.pb is skipped: it holds nothing on CUDA", text)

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_a_machine_without_a_gpu_is_told_of_the_dry_run(self):
        code, _, text = self.run_main(self.step("cuda:0"))
        self.assertEqual(code, 1)
        self.assertIn("there is no GPU; --dry-run needs none", text)

    def test_sizes_that_depend_on_data_are_skipped(self):
        mode = FakeTensorMode(shape_env=ShapeEnv(allow_dynamic_output_shape_ops=True, allow_scalar_outputs=True))
        code, _, text = self.run_main(trace(lambda x: x.nonzero() * 2, (8,), device="cuda:0", mode=mode), "--dry-run")
        self.assertEqual(code, 1)
        self.assertIn("its sizes depend on data", text)

    def test_an_error_stands_in_the_place_of_its_figures(self):
        peaks = {kind: 200 for kind in cuda_meter.PEAKS}
        result = {
            "graph": "g",
            "torch": "2",
            "device": "d",
            "remarks": ["a remark"],
            "predicted": {"classic": peaks, "expandable": peaks},
            "measured": {"classic": {"error": "out of memory"}, "expandable": {"1": peaks, "3": {"requested": 300}}},
            "billed": {"error": "no kernel"},
        }
        text = "\n".join(gpu_memory.report(result, 3))
        self.assertIn("g, torch 2, d\na remark\n", text)
        self.assertIn("| classic | out of memory |", text)
        self.assertIn("| expandable | requested | 200 | 200 | 1.0000 | 300 | 1.5000 |", text)
        self.assertIn("| expandable | reserved | 200 | 200 | 1.0000 | - | - |", text)
        self.assertIn("not billed: no kernel", text)

    @unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
    def test_measured_requested_bytes_are_no_less_than_predicted(self):
        code, _, text = self.run_main(self.step("cuda:0"), "--json", str(self.folder / "out.json"))
        self.assertEqual(code, 0, text)
        result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        for segments, measured in result["measured"].items():
            self.assertGreaterEqual(measured["1"]["requested"], result["predicted"][segments]["requested"])
        self.assertEqual(result["billed"]["first_difference_of_results"], "")


if __name__ == "__main__":
    unittest.main()
