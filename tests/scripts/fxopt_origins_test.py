"""Roles of inputs and outputs by origin, on small models and on the CPU. Skipped without torch."""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
import unittest

from setting import imports_torch

with imports_torch():
    import torch
    from fxopt import bridge, origins
    from torch import nn
    from torch._functorch import partitioners
    from torch._functorch.aot_autograd import aot_compile_joint_with_descriptors, aot_export_joint_with_descriptors
    from torch.fx.experimental.proxy_tensor import make_fx


class Model(nn.Module):
    """A matrix product, a step counter, and statistics that no checkpoint keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(3), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps.add_(1)
        return (self.linear(x).relu() + self.seen).sum()


def written(saved: origins.Saved) -> dict:
    """The main graph as save() writes it, which checks names, kinds and roles."""
    graph_module, told = saved
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.json"
        bridge.save(graph_module, path, **told)
        return bridge.read_module(path)["graphs"][0]


def roles(specs: list[dict]) -> list[str]:
    return [spec.get("role") if isinstance(spec, dict) else spec for spec in specs]


class Exported(unittest.TestCase):
    def test_the_signature_says_everything(self):
        class Program(Model):
            def __init__(self) -> None:
                super().__init__()
                self.scale = torch.tensor(2.0)

            def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                self.steps.add_(1)
                x.mul_(2)
                return self.linear(x) * self.scale + self.seen, self.steps + 1

        program = torch.export.export(Program(), (torch.ones(2, 3),)).run_decompositions({})
        graph_module, told = origins.exported(program)
        self.assertIs(graph_module, program.graph_module)
        self.assertNotIn("kind", told)
        self.assertEqual(
            told["roles"],
            [
                {"role": "parameter", "fqn": "linear.weight"},
                {"role": "parameter", "fqn": "linear.bias"},
                {"role": "buffer", "fqn": "steps", "persistent": True, "mutated": True},
                {"role": "buffer", "fqn": "seen"},
                {"role": "constant", "fqn": "scale"},
                {"role": "input", "user_index": 0, "mutated": True},
            ],
        )
        self.assertEqual(
            told["outputs"],
            [
                {"role": "mutation", "of": "b_steps", "fqn": "steps"},
                {"role": "mutation", "of": "x"},
                {"role": "user"},
                {"role": "user"},
            ],
        )
        self.assertNotIn("kind", written((graph_module, told)))


class Step(unittest.TestCase):
    def trace(self, model: nn.Module) -> origins.Saved:
        parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())

        def step(state: dict, x: torch.Tensor) -> list[torch.Tensor]:
            with nn.utils.stateless._reparametrize_module(model, state):
                loss = model(x)
            return [loss, *torch.autograd.grad(loss, [state[name] for name in parameters])]

        graph_module = make_fx(step, tracing_mode="fake")(parameters | buffers, torch.ones(2, 3))
        return origins.step(graph_module, parameters, buffers, persistent=model.state_dict())

    def test_state_in_order_then_inputs(self):
        graph_module, told = self.trace(Model())
        self.assertEqual(told["kind"], "forward_loss_backward")
        self.assertEqual(
            told["roles"],
            [
                {"role": "parameter", "fqn": "linear.weight"},
                {"role": "parameter", "fqn": "linear.bias"},
                {"role": "buffer", "fqn": "steps", "persistent": True},
                {"role": "buffer", "fqn": "seen"},
                {"role": "input", "user_index": 0},
            ],
        )
        names = [node.name for node in origins.placeholders(graph_module)]
        self.assertEqual(roles(told["outputs"]), ["loss", "gradient", "gradient"])
        self.assertEqual([spec["of"] for spec in told["outputs"][1:]], names[:2])
        self.assertEqual(len(written((graph_module, told))["outputs"]), 3)

    def test_one_tensor_under_two_names_is_an_alias(self):
        weight = torch.ones(3)
        graph_module = make_fx(lambda state: state["a"] + state["b"])({"a": weight, "b": weight})
        _, told = origins.step(graph_module, {"a": weight, "b": weight}, outputs="user")
        self.assertEqual(told["roles"][1], {"role": "parameter", "fqn": "b", "alias_of_input": 0})

    def test_other_outputs_than_a_loss_and_gradients_are_refused(self):
        graph_module = make_fx(lambda state: state["a"] + 1)({"a": torch.ones(3)})
        with self.assertRaisesRegex(ValueError, "1 outputs, not a loss and 1 gradients"):
            origins.step(graph_module, ["a"])


class Joint(unittest.TestCase):
    def capture(self, model: nn.Module, *args: torch.Tensor):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        torch.fx.traceback.current_meta.clear()
        return aot_export_joint_with_descriptors(stack, model, args)

    def test_descriptors_metadata_and_module_agree_on_the_roles(self):
        model = Model()
        captured = self.capture(model, torch.ones(2, 3))
        graph_module, told = origins.joint(captured, module=model)
        self.assertEqual(told["kind"], "joint")
        self.assertEqual(told["num_forward_outputs"], captured._aot_state.fw_metadata.num_forward)
        self.assertEqual(roles(told["roles"]), ["parameter", "parameter", "buffer", "buffer", "input", "tangent"])
        steps, seen = told["roles"][2:4]
        self.assertEqual((steps["fqn"], steps["mutated"], steps["persistent"]), ("steps", True, True))
        self.assertNotIn("mutated", seen)
        self.assertNotIn("persistent", seen)
        mutation, loss, *gradients = told["outputs"]
        self.assertEqual((mutation["role"], mutation["fqn"]), ("mutation", "steps"))
        self.assertEqual((loss["role"], loss["guessed"]), ("loss", True))
        self.assertEqual(
            [(g["role"], g["of"], g["fqn"]) for g in gradients[:2]],
            [("gradient", "primals_1", "linear.weight"), ("gradient", "primals_2", "linear.bias")],
        )
        self.assertEqual(written((graph_module, told))["num_forward_outputs"], 2)

    def test_a_loss_that_the_caller_names_is_not_guessed(self):
        _, told = origins.joint(self.capture(Model(), torch.ones(2, 3)), loss=0)
        self.assertEqual(told["outputs"][1]["role"], "loss")
        self.assertNotIn("guessed", told["outputs"][1])

    def test_tied_weights_are_aliases(self):
        class Tied(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
                self.b.weight = self.a.weight

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.b(self.a(x)).sum()

        model = Tied()
        _, told = origins.joint(self.capture(model, torch.ones(2, 3)), module=model)
        aliases = [role.get("alias_of_input") for role in told["roles"] if role["role"] == "parameter"]
        self.assertEqual(aliases[0], None)
        self.assertEqual(set(aliases[1:]) - {0}, set())

    def test_an_output_that_is_a_view_of_an_input_says_so(self):
        class View(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.ones(3))

            def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                return (x * self.weight).sum(), y.view(-1)

        _, told = origins.joint(self.capture(View(), torch.ones(3), torch.ones(2, 2)))
        self.assertEqual([spec.get("alias_of_input") for spec in told["outputs"][:2]], [None, 2])


class Pair(unittest.TestCase):
    def capture(self, model: nn.Module, *args: torch.Tensor):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        torch.fx.traceback.current_meta.clear()
        captured = aot_export_joint_with_descriptors(stack, model, args)
        graphs = []

        def keep(graph_module, example_inputs):
            graphs.append(graph_module)
            return graph_module

        partition = partitioners.min_cut_rematerialization_partition
        aot_compile_joint_with_descriptors(captured, partition_fn=partition, fw_compiler=keep, bw_compiler=keep)
        return graphs, captured._aot_state.fw_metadata

    def check_saved(self, forward: origins.Saved, backward: origins.Saved) -> None:
        """Each saved value comes from a forward output, which has the same name here."""
        leaves = origins.output_leaves(forward[0])
        for node, role in zip(origins.placeholders(backward[0]), backward[1]["roles"]):
            if role["role"] == "saved_value":
                position = role["saved_from_output"]
                self.assertEqual(leaves[position].name, node.name)
                self.assertEqual(forward[1]["outputs"][position]["role"], "saved_value")

    def test_saved_values_know_where_they_come_from(self):
        (forward_graph, backward_graph), metadata = self.capture(Model(), torch.ones(2, 3))
        forward, backward = origins.pair(forward_graph, backward_graph, metadata, loss=0)
        told = forward[1]
        self.assertEqual(told["kind"], "forward")
        self.assertEqual(told["num_forward_outputs"], 2)
        self.assertEqual(roles(told["outputs"][:2]), ["mutation", "loss"])
        self.assertEqual(set(roles(told["outputs"][2:])), {"saved_value"})
        self.assertEqual(roles(told["roles"]), ["parameter", "parameter", "buffer", "buffer", "input"])
        self.check_saved(forward, backward)
        told = backward[1]
        self.assertEqual(told["kind"], "backward")
        self.assertEqual(roles(told["roles"])[-1], "tangent")
        self.assertEqual(roles(told["outputs"])[:2], ["gradient", "gradient"])
        for main in map(written, (forward, backward)):
            self.assertIn(main["kind"], ("GRAPH_KIND_FORWARD", "GRAPH_KIND_BACKWARD"))

    def test_values_that_only_backward_reads_are_donated(self):
        (forward_graph, backward_graph), metadata = self.capture(Model(), torch.ones(2, 3))
        _, (graph_module, told) = origins.pair(forward_graph, backward_graph, metadata)
        donated = [n.name for n, r in zip(origins.placeholders(graph_module), told["roles"]) if r.get("donated")]
        self.assertTrue(donated)
        self.assertFalse([name for name in donated if name.startswith(("primals", "tangents"))])

    def test_saved_sizes_and_states_of_generators(self):
        from traces import close, pair

        self.addCleanup(close)
        forward, backward = pair.capture(pair.TWIN)
        self.check_saved_sizes(forward, backward)
        self.assertEqual(roles(forward[1]["outputs"][:3]), ["mutation", "loss", "user"])
        states = [n for n in origins.placeholders(backward[0]) if n.name.startswith("rng_state_output")]
        self.assertEqual(len(states), 4)

    def check_saved_sizes(self, forward: origins.Saved, backward: origins.Saved) -> None:
        """Sizes are first among the inputs of backward and last among the outputs of forward."""
        leaves = origins.output_leaves(forward[0])
        sizes = [n for n in origins.placeholders(backward[0]) if isinstance(n.meta.get("val"), torch.SymInt)]
        self.assertTrue(sizes)
        told = backward[1]["roles"][: len(sizes)]
        last = list(range(len(leaves) - len(sizes), len(leaves)))
        self.assertEqual([role["saved_from_output"] for role in told], last)
        for node, role in zip(sizes, told):
            self.assertEqual(leaves[role["saved_from_output"]].meta["val"].node.expr, node.meta["val"].node.expr)

    def test_generators_come_last(self):
        from traces import close, pair

        self.addCleanup(close)
        size = pair.Size("cuda", layers=1, width=8, heads=2, batch=4, length=4, classes=4)
        for graph_module, told in pair.capture(size):
            generators = [isinstance(n.meta.get("val"), torch.Generator) for n in origins.placeholders(graph_module)]
            self.assertEqual([role.get("role") == "rng_state" for role in told["roles"]], generators)
            self.assertEqual(sum(generators), 2)


class TracedStep(unittest.TestCase):
    def setUp(self):
        try:
            from torchtitan.experiments.graph_trainer.make_fx_tracer import minimal_fx_tracer
        except ImportError as error:
            self.skipTest(f"torchtitan is missing: {error}")
        self.tracer = minimal_fx_tracer

    def trace(self, model: nn.Module, **told) -> origins.Saved:
        def step(x: torch.Tensor) -> list[torch.Tensor]:
            loss = model(x)
            parameters = [p for _, p in model.named_parameters(remove_duplicate=False) if p.requires_grad]
            return [loss, *torch.autograd.grad(loss, parameters, allow_unused=True)]

        return origins.traced_step(self.tracer(step, module=model)(torch.ones(2, 3)), model, **told)

    def test_state_has_names_and_keeps_its_address(self):
        graph_module, told = self.trace(Model(), is_forward_backward_step=True)
        static = {"static_address": True}
        self.assertEqual(
            told["roles"],
            [
                {"role": "parameter", "fqn": "linear.weight"} | static,
                {"role": "parameter", "fqn": "linear.bias"} | static,
                {"role": "buffer", "fqn": "steps", "persistent": True} | static,
                {"role": "buffer", "fqn": "seen"} | static,
                {"role": "input", "user_index": 0},
            ],
        )
        self.assertEqual(told["outputs"][0], {"role": "loss"})
        self.assertEqual(told["outputs"][1], {"role": "gradient", "of": "arg0_1", "fqn": "linear.weight"})
        self.assertEqual(written((graph_module, told))["kind"], "GRAPH_KIND_FORWARD_LOSS_BACKWARD")

    def test_what_the_number_of_outputs_suggests_is_guessed(self):
        _, told = self.trace(Model())
        self.assertEqual([spec.get("guessed") for spec in told["outputs"]], [True, True, True])

    def test_a_subclass_is_taken_apart_by_its_layout(self):
        from torch.testing._internal.two_tensor import TwoTensor

        model = Model()
        model.linear.bias = nn.Parameter(TwoTensor(torch.ones(3), torch.ones(3)), requires_grad=False)
        _, told = self.trace(model, is_forward_backward_step=True)
        self.assertEqual([r.get("subclass_path") for r in told["roles"][:3]], [None, ["a"], ["b"]])
        self.assertEqual([r["fqn"] for r in told["roles"][1:3]], ["linear.bias"] * 2)
        self.assertTrue(all(r["static_address"] for r in told["roles"][:5]))
        parts = [(spec["role"], spec.get("of"), spec["subclass_path"]) for spec in told["outputs"]]
        loss, gradient = ("loss", None), ("gradient", "arg0_1")
        self.assertEqual(parts, [(*loss, ["a"]), (*loss, ["b"]), (*gradient, ["a"]), (*gradient, ["b"])])

    def test_an_optimizer_s_state_has_keys(self):
        model = nn.Linear(3, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()

        def step(x: torch.Tensor) -> torch.Tensor:
            return model(x).sum()

        traced = self.tracer(step, module=model, optimizer=optimizer)(torch.ones(2, 3))
        _, told = origins.traced_step(traced, model, optimizer)
        state = [role for role in told["roles"] if role["role"] == "optimizer_state"]
        self.assertEqual(state[0], {"role": "optimizer_state", "optimizer_key": "momentum_buffer", "fqn": "weight"})
        self.assertIn("lr", [role["optimizer_key"] for role in state])
        self.assertEqual(told["roles"][-1], {"role": "input", "user_index": 0})


if __name__ == "__main__":
    unittest.main()
