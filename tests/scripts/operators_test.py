"""Graphs of operators and sizes that PyTorch registers and few models use: each is saved in every
form, known to the program, and loaded as it was. Skipped without torch or the fxopt program."""

from __future__ import annotations

import json
import subprocess
import sys
import unittest

from fxopt_program import Fxopt
from setting import SCRIPTS, imports_torch, need_program

with imports_torch():
    import torch
    import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
    from fxopt import bridge
    from fxopt.writer import _op_schema
    from small_graphs import Case
    from torch.fx import Graph, GraphModule
    from torch.fx.experimental.proxy_tensor import make_fx
need_program()


def trace(function, *args, mode="fake"):
    return make_fx(function, tracing_mode=mode, _allow_non_fake_inputs=True)(*args)


def part(elements, offset, size, stride):
    """A tensor that begins inside of a larger storage."""
    return torch.empty(0).set_(torch.zeros(elements).untyped_storage(), offset, size, stride)


def quantized_step(x, w):
    for _ in range(3):
        x = torch.tanh(x @ torch.fake_quantize_per_tensor_affine(w, 0.1, 0, -128, 127))
    loss = x.sum()
    return loss, *torch.autograd.grad(loss, [w])


class Operators(Case):
    def run_on(self, graph_module, command, *more):
        path = self.folder / "graph.pb"
        bridge.save(graph_module, path)
        return Fxopt(None).run(command, str(path), *more)["files"][0]

    def test_none_that_torch_registers_is_opaque(self):
        lstm, cell, gru = torch.nn.LSTM(8, 8), torch.nn.LSTMCell(8, 8), torch.nn.GRU(8, 8)
        x = torch.ones(5, 2, 8)

        def without_gradient(x):
            return torch.autograd.grad(torch.sgn(x).sum(), [x])

        def quantized_integers(x):
            packed = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8)
            return torch.ops.quantized_decomposed.dequantize_per_tensor(packed, 0.1, 0, -128, 127, torch.int8)

        programs = {
            "LSTM": (lambda x: lstm(x)[0], x),
            "LSTMCell": (lambda x: cell(x[0])[0], x),
            "GRU": (lambda x: gru(x)[0], x),
            "fake quantization": (quantized_step, x[0], torch.rand(8, 8, requires_grad=True)),
            "zeros as a gradient": (without_gradient, torch.ones(3, requires_grad=True)),
            "an operator that torchgen derives": (lambda x: torch.ops.aten._foobar.out(x, out=torch.empty_like(x)), x),
            "a listed operator": (lambda x: torch.ops.aten._convert_indices_from_coo_to_csr(x.long().flatten(), 5), x),
            "quantized integers": (quantized_integers, x),
        }
        for name, (function, *args) in programs.items():
            with self.subTest(name):
                self.assertEqual(self.run_on(trace(function, *args), "verify")["opaque"], [])

    @unittest.skipUnless(torch.__version__.startswith("2.15."), "the lists are those of torch 2.15")
    def test_no_registered_operator_is_opaque(self):
        script = SCRIPTS / "peers" / "registry.py"
        done = subprocess.run([sys.executable, str(script), "--tries", "0"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_only_operators_of_torch_are_known_to_state_all_effects(self):
        library = torch.library.Library("quantized", "FRAGMENT")  # a user's operator, in a namespace of torch
        library.define("fxopt_test_own(Tensor x) -> Tensor")
        self.addCleanup(library._destroy)
        known = torch.ops.quantized_decomposed.quantize_per_tensor.default
        self.assertTrue(_op_schema(str(known), known)["pure"])
        own = torch.ops.quantized.fxopt_test_own.default
        keeps_bias = torch.ops.aten._wrapped_linear_prepack.default
        views_its_storage = torch.ops.aten.set.source_Storage  # torchgen derives it
        for operator in (own, keeps_bias, views_its_storage):
            self.assertNotIn("pure", _op_schema(str(operator), operator))

    def test_calls_on_tensors_that_hold_an_argument_are_not_merged(self):
        def sparse(values):
            held = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), values, (4,))
            before = held.to_dense().sum()
            values.add_(1)
            return before, held.to_dense().sum()

        def packed(x, weight, bias, scale, zero):
            pack, multiply = torch.ops._quantized._wrapped_linear_prepack, torch.ops._quantized._wrapped_quantized_linear_prepacked
            held = pack(weight, scale, zero, bias)
            before = multiply(x, scale, zero, held, scale, zero, 4)
            bias.add_(5)
            return before.sum(), multiply(x, scale, zero, held, scale, zero, 4).sum()

        square = torch.linspace(-1, 1, 16).view(4, 4)
        for function, mode, *inputs in (
            (sparse, "real", torch.ones(2)),
            (packed, "fake", square, square.t().contiguous(), torch.ones(4), torch.tensor(0.1), torch.tensor(0)),
        ):
            with self.subTest(function.__name__):
                traced = trace(function, *(x.clone() for x in inputs), mode=mode)
                expected = traced(*(x.clone() for x in inputs))
                self.assertNotEqual(*expected)
                found = bridge.apply(traced, "canonicalize,cse,dce")(*(x.clone() for x in inputs))
                self.assertEqual(found, expected)

    def test_what_packed_weights_hold_is_written_and_counted(self):
        quantized, graph = torch.ops.quantized, Graph()
        x, weight, bias = inputs = [graph.placeholder(name) for name in ("x", "weight", "bias")]
        held = graph.call_function(torch.ops.aten.clone.default, (bias,))
        packed = graph.call_function(quantized.linear_prepack_fp16.default, (weight, held))
        added = graph.call_function(torch.ops.aten.add_.Tensor, (held, 5.0))
        graph.output((graph.call_function(quantized.linear_dynamic_fp16.default, (x, packed)),))
        for node, size in zip([*inputs, held, added, graph.find_nodes(op="output")[0].args[0][0]], [(2, 4), (3, 4), 3, 3, 3, (2, 3)]):
            node.meta["val"] = torch.empty(size)
        packed.meta["val"] = quantized.linear_prepack_fp16(torch.ones(3, 4), torch.ones(3))
        values, traced = [torch.ones(2, 4), torch.ones(3, 4), torch.ones(3)], GraphModule({}, graph)
        self.assertEqual(traced(*values)[0].tolist(), [[10.0] * 3] * 2)  # the write is seen
        self.assertEqual(self.run_on(traced, "mem")["graphs"][0]["unknown_nodes"], [packed.name])
        self.assertEqual(bridge.apply(traced, "canonicalize,cse,dce")(*values)[0].tolist(), [[10.0] * 3] * 2)

    def test_an_operator_that_hides_a_write_is_kept(self):
        graph = Graph()
        x = graph.placeholder("x")
        written = graph.call_function(torch.ops.aten._saturate_weight_to_fp16.default, (x,))
        graph.output(graph.call_function(torch.ops.aten.neg.default, (x,)))
        for node in (x, written):
            node.meta["val"] = torch.empty(3, device="meta")
        traced = bridge.apply(GraphModule({}, graph), "canonicalize,cse,dce")
        self.assertIn("_saturate_weight_to_fp16", traced.code)

    def test_full_recompute_of_quantized_weights_saves_no_product(self):
        traced = trace(quantized_step, torch.ones(2, 8), torch.rand(8, 8, requires_grad=True))
        report = self.run_on(traced, "opt", "-o", "/dev/null", "--passes", "sac{policy=full},remat", "--explain")
        self.assertNotIn("mutated", json.dumps(report))

    def test_a_guard_with_two_to_the_63_is_saved_in_every_form(self):
        def convolved(x, w):
            return torch.nn.functional.conv1d(x, w, padding="same", dilation=2)

        traced = trace(convolved, torch.ones(2, 3, 9), torch.ones(4, 3, 3), mode="symbolic")
        guards = [str(guard.expr) for guard in traced.shape_env.guards]
        self.assertTrue(any(str(2**63) in guard for guard in guards), guards)
        for form in ("pb", "json", "fxg"):
            with self.subTest(form):
                path = self.folder / f"graph.{form}"
                bridge.save(traced, path)
                self.assertEqual([str(guard.expr) for guard in bridge.load(path).shape_env.guards], guards)

    def test_load_keeps_the_ranges_of_symbols_of_a_tensor_inside_a_storage(self):
        for function, x in (
            (lambda x: torch.unbind(x, 1), part(50, 1, (5, 5), (10, 2))),
            (lambda x: x.as_strided((2, 2), (1, 2), 0), part(20, 5, (10,), (1,))),
            (lambda x: torch.diff(x), part(40, 3, (4, 6), (8, 1))),
        ):
            self.round_trip(trace(function, x, mode="symbolic"))

    def test_sizes_that_go_through_a_float_have_the_hint_of_the_framework(self):
        for mode in ("nearest", "bilinear"):
            with self.subTest(mode):

                def resized(x):
                    return torch.nn.functional.interpolate(x, scale_factor=1.7, mode=mode) + 1

                traced = trace(resized, torch.ones(1, 2, 4, 4), mode="symbolic")
                (graph,) = self.run_on(traced, "mem")["graphs"]
                self.assertEqual(graph["unknown_storages"], 0)
                if mode == "nearest":  # the trace of bilinear with fixed sizes has another decomposition
                    fixed = trace(resized, torch.ones(1, 2, 4, 4))
                    self.assertEqual(graph["peak_bytes"], self.run_on(fixed, "mem")["graphs"][0]["peak_bytes"])

    def test_a_placeholder_after_calls_is_written_before_them(self):
        graph = Graph()
        x = graph.placeholder("x")
        y = graph.call_function(torch.ops.aten.neg.default, (x,))
        token = graph.placeholder("token")
        graph.output((y, token))
        for node in graph.nodes:
            node.meta["val"] = torch.empty(4, device="meta")
        path = self.folder / "graph.pb"
        bridge.save(GraphModule({}, graph), path)
        self.assertEqual(Fxopt(None).run("verify", str(path))["files"][0]["verdict"], "ok")
        names = [node.name for node in bridge.load(path).graph.nodes if node.op == "placeholder"]
        self.assertEqual(names, ["x", "token"])


if __name__ == "__main__":
    unittest.main()
