"""The traces behind testdata: the small copies run and give the same numbers each time, and
addresses in metadata are numbered."""

from __future__ import annotations

import unittest

from setting import imports_torch

with imports_torch():
    import make_testdata
    import torch
    import traces
    from torch.fx.traceback import NodeSource
    from torch.utils import _pytree as pytree

QUICK = ("issue178935_selective", "llama1b_twin", "pair_forward_twin", "pair_backward_twin", "exported_twin")


class Twins(unittest.TestCase):
    def run_once(self, name: str) -> list[object]:
        arguments = make_testdata.inputs(name)
        graph_module, _ = make_testdata.trace(name)
        traces.close()
        torch.manual_seed(1)
        with torch.no_grad():
            return pytree.tree_leaves(graph_module(*arguments))

    def test_a_twin_runs_and_gives_the_same_numbers(self):
        for name in QUICK:
            with self.subTest(name):
                if name == "llama1b_twin" and not hasattr(torch.compiler, "_non_strict_tracing_context"):
                    self.skipTest(f"torch {torch.__version__} cannot mark backward while tracing")
                first, second = self.run_once(name), self.run_once(name)
                self.assertEqual(len(first), len(second))
                for one, other in zip(first, second):
                    if isinstance(one, torch.Tensor):
                        self.assertTrue(torch.equal(one, other))
                        self.assertTrue(torch.isfinite(one.float()).all())

    def test_every_twin_has_an_original_inputs_and_substitutions(self):
        twins = [name for name in make_testdata.GRAPHS if name.endswith("_twin")]
        self.assertEqual(len(twins), 11)
        for name in twins:
            self.assertIn(name.removesuffix("_twin"), make_testdata.GRAPHS)
            self.assertIsNotNone(make_testdata.GRAPHS[name].inputs)
            self.assertTrue(make_testdata.GRAPHS[name].substitutions)

    def test_a_graph_too_large_for_a_cpu_has_no_inputs(self):
        with self.assertRaisesRegex(ValueError, "llama8b_flb does not fit a CPU"):
            make_testdata.inputs("llama8b_flb")


class Identities(unittest.TestCase):
    def test_addresses_become_numbers_in_order_of_appearance(self):
        graph_module = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        nodes = [node for node in graph_module.graph.nodes if node.op == "call_function"]
        for node, address in zip(nodes, ("139830739120912", "139830748741456")):
            node.meta["nn_module_stack"] = {address: ("a", int), "kept": ("b", int)}
            node.meta["from_node"] = [NodeSource(node, "pass")]
        nodes[0].meta["from_node"][0].node_info.target = "<function add at 0x7f7503a79f80>"
        traces.number_identities(graph_module)
        self.assertEqual([list(node.meta["nn_module_stack"]) for node in nodes], [["0", "kept"], ["2", "kept"]])
        sources = [node.meta["from_node"][0] for node in nodes]
        self.assertEqual([source.graph_id for source in sources], [1, 1])
        self.assertEqual(sources[0].target, "<function add>")


if __name__ == "__main__":
    unittest.main()
