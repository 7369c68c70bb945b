"""Symbolic graphs that are saved, loaded and saved again. Skipped without torch or the fxopt
program."""

from __future__ import annotations

import math
import re
import unittest

from setting import imports_torch, need_program

with imports_torch():
    import sympy
    import torch
    import torch.utils._sympy.functions as functions
    from fxopt import bridge
    from fxopt.symbols import SymbolWriter
    from small_graphs import Case
    from torch.fx import Graph, GraphModule
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.sym_node import SymNode
need_program()

AUTO = torch.export.Dim.AUTO


def exported(function, *args, **shapes):
    """The graph that torch.export makes of the function, without module stacks, which name
    functions of a test."""
    module = torch.nn.Module()
    module.forward = function
    result = torch.export.export(module, args, dynamic_shapes=shapes).run_decompositions().graph_module
    for node in result.graph.nodes:
        node.meta.pop("nn_module_stack", None)
    return result


def conditions(graph_module):
    env = graph_module.shape_env
    return [str(guard.expr) for guard in env.guards]


class Again(Case):
    """round_trip() compares descriptions, and the bytes of the first and second save."""

    def test_expressions(self):
        def rounded(x, n):
            rows, columns = x.shape
            return x.new_zeros(math.ceil(rows / 3)), x.new_zeros(torch.sym_ite(rows > columns, rows, columns))

        def convolved(x, n):
            pooled = torch.nn.functional.max_pool2d(x[None], 3, 2)
            return torch.cat([pooled.flatten(), pooled.flatten()])

        def counted(x, n):
            count = n.item()
            torch._check(count % 2 == 0)
            torch._check(count > 1)
            return torch.zeros(count).view(-1, 2), n.to(torch.float64).item() * x

        for function in (rounded, convolved, counted):
            with self.subTest(function.__name__):
                traced = exported(function, torch.randn(11, 7), torch.tensor(4), x={0: AUTO, 1: AUTO}, n={})
                loaded = self.round_trip(traced)
                bridge.apply(loaded, "canonicalize,cse,dce")
                self.round_trip(loaded)
                bridge.apply(loaded, "canonicalize,cse,dce")
                self.round_trip(bridge.apply(traced, "canonicalize,cse,dce"))

    def test_another_order_of_terms_settles_at_the_second_save(self):
        paths = [self.folder / f"{i}.json" for i in range(3)]
        traced = make_fx(lambda x: x.view(-1) + 1, tracing_mode="symbolic")(torch.zeros(8, 9))
        bridge.save(traced, paths[0])
        written = paths[0].read_text(encoding="utf-8")
        (product,) = set(re.findall(r'"(s\d+ \* s\d+)"', written))
        paths[0].write_text(written.replace(product, " * ".join(reversed(product.split(" * ")))), encoding="utf-8")
        for source, target in zip(paths, paths[1:]):
            bridge.save(bridge.load(source), target)
        first, second, third = (path.read_text(encoding="utf-8") for path in paths)
        self.assertNotEqual(first, second)
        self.assertEqual(second, third)

    def test_floats_keep_all_digits(self):
        def scaled(x):
            rows, columns = x.shape
            return x * (rows * (1 / 3)), x * (columns * 1e10), x.new_zeros(int(rows / 1e-4) // 10**5)

        traced = make_fx(scaled, tracing_mode="symbolic")(torch.zeros(8, 9))
        for form in ("json", "pb"):
            with self.subTest(form):
                self.round_trip(traced, form)

    def test_a_size_that_a_guard_fixed_in_part_of_the_graph(self):
        def split(n, x):
            first, second = n.tolist()
            torch._check(first + second == 7)
            return x[:7].split([first, second])

        args = (torch.tensor([3, 4]), torch.zeros(9, 2))
        self.round_trip(make_fx(split, tracing_mode="symbolic")(*args))

    def test_guards_stay_when_they_leave_no_symbol_in_the_graph(self):
        traced = exported(lambda x: x.new_zeros(2 ** int(math.log2(x.shape[0]))), torch.zeros(6), x={0: AUTO})
        loaded = self.round_trip(traced)
        self.assertEqual(len(conditions(loaded)), 1)
        again = self.round_trip(loaded)
        self.assertEqual(conditions(again), conditions(loaded))

    def test_run_time_assertions_keep_their_order_and_symbol(self):
        def counted(n):
            counts = n.tolist()
            for count in counts:
                torch._check(count >= 1)
            torch._check(counts[2] + counts[10] <= 50)
            torch._check(counts[10] + counts[11] <= 60)
            torch._check(counts[10] * counts[9] <= 70)
            torch._check(counts[2] + counts[9] <= 80)
            return [torch.zeros(count) for count in counts]

        traced = exported(counted, torch.arange(1, 13), n={})
        self.assertEqual(self.kept_under(self.round_trip(traced)), self.kept_under(traced))

    def kept_under(self, graph_module):
        """Conditions on several symbols, by the symbol under which the environment keeps them."""
        values = [node.meta.get("val") for node in graph_module.graph.nodes]
        env = next(value.node.shape_env for value in values if isinstance(value, torch.SymInt))
        found = {str(s): [str(e.expr) for e in entries] for s, entries in env.deferred_runtime_asserts.items()}
        self.assertTrue(any("u10" == name for name in found))
        return found


class OneText(Case):
    """Different expressions that the schema writes alike."""

    def setUp(self):
        super().setUp()
        self.a, self.b = (sympy.Symbol(name, integer=True, positive=True) for name in ("s0", "s1"))

    def test_two_of_them_are_told_apart(self):
        writer = SymbolWriter()
        floor, exact = functions.FloorDiv(self.a, self.b), functions.CleanDiv(self.a, self.b)
        self.assertEqual([writer.text(floor), writer.text(exact)], ["s0 // s1", "s0 // s1 + 0"])
        self.assertEqual(writer.spelled, {"s0 // s1 + 0": "CleanDiv(s0, s1)"})

    def test_one_alone_has_the_text_as_it_is(self):
        writer = SymbolWriter()
        self.assertEqual(writer.text(functions.CleanDiv(self.a, self.b)), "s0 // s1")

    def test_both_come_back(self):
        traced = make_fx(lambda x: x + 1, tracing_mode="symbolic")(torch.zeros(8, 9))
        rows, columns = next(iter(traced.graph.nodes)).meta["val"].shape
        kinds = [functions.CleanDiv, functions.FloorDiv]
        graph = Graph()
        for i, kind in enumerate(kinds):
            node = SymNode(kind(rows.node.expr, columns.node.expr), rows.node.shape_env, int, 0)
            graph.placeholder(f"n{i}").meta["val"] = torch.SymInt(node)
        graph.output(())
        loaded = self.round_trip(GraphModule({}, graph))
        found = [type(node.meta["val"].node.expr) for node in loaded.graph.nodes if node.op == "placeholder"]
        self.assertEqual(found, kinds)


if __name__ == "__main__":
    unittest.main()
