"""fxopt.partition in AOTAutograd and Dynamo: training has the losses of PyTorch's own
partitioner."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import operator
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Callable

import setting

with setting.imports_torch():
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

setting.need_program()

import fxopt  # noqa: E402
import partition_reports  # noqa: E402
from fxopt import draws  # noqa: E402
from functorch.compile import make_boxed_func  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition  # noqa: E402
from torch.fx import GraphModule, Node  # noqa: E402
from torch.utils.checkpoint import CheckpointPolicy, checkpoint  # noqa: E402

STEPS = 20


def setUpModule() -> None:
    unittest.addModuleCleanup(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(1)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Transformer(32, 4, 1, 1, 64, dropout=0.0, batch_first=True)
        self.last = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.inner(x, x.flip(1)))


class Dropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 64)
        self.last = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.dropout(F.gelu(self.first(x)), 0.3))


class CheckpointedDropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Dropped() for _ in range(2)])
        self.back = nn.Linear(10, 16)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + F.dropout(self.back(checkpoint(layer, x, use_reentrant=False)), 0.1)
        return x


class Residual(nn.Module):
    """Batch norm updates its statistics in place."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.last = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norms[0](self.convolutions[0](x)))
        y = F.relu(y + self.norms[1](self.convolutions[1](y)))
        return self.last(y.mean((2, 3)))


SIZES = {Encoder: (6, 32), Dropped: (16,), CheckpointedDropout: (16,), Residual: (3, 8, 8)}


def trained(
    kind: type[nn.Module], backend: Callable, *, dynamic: bool = False, options: dict | None = None
) -> tuple[list[float], dict[str, object]]:
    """The losses, and the parameters and buffers at the end."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = kind()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    compiled = torch.compile(model, backend=backend, dynamic=dynamic or None, **({"options": options} if options else {}))
    found = []
    for step in range(STEPS):
        torch.manual_seed(step)
        x = torch.randn(4 + (2 * (step % 3) if dynamic else 0), *SIZES[kind])
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found, {name: value.tolist() for name, value in model.state_dict().items()}


def by(partition_fn: Callable) -> Callable:
    return aot_autograd(fw_compiler=lambda found, _: make_boxed_func(found.forward), partition_fn=partition_fn)


def random_calls(graph: GraphModule) -> list[Node]:
    return [node for node in graph.graph.nodes if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())]


def joint_of(function: Callable, *inputs: Tensor) -> tuple[GraphModule, int]:
    """AOTAutograd's joint graph of the function, and the number of its forward outputs."""
    caught = []

    def keep(joint: GraphModule, _: object, *, num_fwd_outputs: int, **more: object) -> tuple[GraphModule, GraphModule]:
        caught.append((joint, num_fwd_outputs))
        return default_partition(joint, _, num_fwd_outputs=num_fwd_outputs, **more)

    torch._dynamo.reset()
    torch.compile(function, backend=by(keep))(*inputs)
    return caught[0]


def names(graph_module: GraphModule) -> tuple[list[str], list[str]]:
    inputs = [node.name for node in graph_module.graph.find_nodes(op="placeholder")]
    return inputs, [str(item) for item in graph_module.graph.output_node().args[0]]


def bytes_above_start(model: nn.Module, loss: Callable[[], Tensor]) -> int:
    """Returns the largest number of bytes that the second step allocates and holds. Gradients of the
    first step are freed before."""
    loss().backward()
    model.zero_grad()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        loss().backward()
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((each for each in events if each.get("name") == "[memory]"), key=lambda each: each["ts"])
    return max(itertools.accumulate(each["args"]["Bytes"] for each in changes))


class PartitionTest(unittest.TestCase):
    def test_training_goes_on_as_with_pytorchs_partitioner(self) -> None:
        kinds = [*itertools.product((Residual, Dropped, CheckpointedDropout), (False, True)), (Encoder, False)]
        for kind, dynamic in kinds:
            with self.subTest(kind=kind.__name__, dynamic=dynamic):
                expected = trained(kind, by(default_partition), dynamic=dynamic)
                for cut in ("", "mode=min-cut", "mode=min-cut,compat=torch,mark-saved=true"):
                    self.assertEqual(trained(kind, by(fxopt.partitioner(cut=cut)), dynamic=dynamic), expected, cut)
                options = {"passes": "cse,dce", "cut": "mode=min-cut"}
                self.assertEqual(trained(kind, fxopt.backend, dynamic=dynamic, options=options), expected)

    def test_whole_models_are_trained_as_with_pytorchs_partitioner(self) -> None:
        missing = [name for name in ("torchvision", "transformers") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"a model is missing: {', '.join(missing)}")
        import training_loops as loops

        for kind in (loops.Gpt2, loops.Resnet18, loops.T5):
            expected = loops.run(kind, loops.REFERENCE, STEPS, dynamic=False)
            for way in ("partition_fn sac{policy=full}", "backend cse,dce mode=min-cut"):
                with self.subTest(kind=kind.__name__, way=way):
                    loop = loops.run(kind, way, STEPS, dynamic=False)
                    self.assertEqual(loop.difference(expected), "")

    def test_reported_programs_give_what_eager_execution_does(self) -> None:
        for program in partition_reports.PROGRAMS:
            for name, result, is_wrong in partition_reports.judged(program, None):
                with self.subTest(program.name, by=name):
                    self.assertFalse(is_wrong, result.text)

    def test_what_a_function_keeps_unchecked_comes_last(self) -> None:
        (program,) = (each for each in partition_reports.PROGRAMS if each.forward is partition_reports.keeps_and_saves)
        found = []

        def note(partition_fn: Callable) -> Callable:
            def noted(*inputs: object, **told: object) -> tuple[GraphModule, GraphModule]:
                halves = partition_fn(*inputs, **told)
                found.append([names(half) for half in halves])
                return halves

            return noted

        for partition_fn in (default_partition, fxopt.partitioner()):
            program.run(program.compiled(note(partition_fn)))
        self.assertEqual(found[0], found[1])

    def test_what_the_tags_recompute_is_not_saved_and_gradients_stay(self) -> None:
        x = torch.randn(4, 16, requires_grad=True)
        weight = torch.randn(16, 16, requires_grad=True)

        def function(x: Tensor, weight: Tensor) -> Tensor:
            return torch.tanh(torch.sin(x @ weight)).sum()

        joint, count = joint_of(function, x, weight)
        without_tags = fxopt.partition(joint_of(function, x, weight)[0], num_fwd_outputs=count)[0]
        forward, backward = fxopt.partition(joint, num_fwd_outputs=count, passes="sac{policy=full}")
        self.assertLess(len(names(forward)[1]), len(names(without_tags)[1]))
        self.assertTrue(any(node.name.endswith("_recomputed") for node in backward.graph.nodes))
        loss = function(x, weight)
        expected = torch.autograd.grad(loss, (x, weight))
        inputs = {"primals_1": x.detach(), "primals_2": weight.detach()}
        returned = forward(*(inputs[name] for name in names(forward)[0]))
        given = dict(zip(names(forward)[1], returned)) | {"tangents_1": torch.ones(())}
        found = backward(*(given[name] for name in names(backward)[0]))
        self.assertTrue(torch.equal(returned[0], loss))
        for a, b in zip(expected, found):
            self.assertTrue(torch.equal(a, b))

    def test_the_minimal_cut_of_torch_is_pytorchs(self) -> None:
        def function(x: Tensor, weight: Tensor) -> Tensor:
            return F.layer_norm(torch.tanh(x @ weight).sin(), (16,)).exp().sum()

        inputs = [torch.randn(4, 16, requires_grad=True), torch.randn(16, 16)]
        joint, count = joint_of(function, *inputs)
        expected = min_cut_rematerialization_partition(joint_of(function, *inputs)[0], None, num_fwd_outputs=count)
        halves = fxopt.partition(joint, num_fwd_outputs=count, cut="mode=min-cut,compat=torch")
        self.assertEqual([*map(names, halves)], [*map(names, expected)])

    def test_the_minimal_cut_never_has_a_higher_peak_than_pytorchs(self) -> None:
        """On models for which a cut chosen by bytes, or by an estimate of the peak, has a higher one."""
        peers = setting.SCRIPTS / "peers"
        with tempfile.TemporaryDirectory() as folder:
            trace = [sys.executable, str(peers / "small_models.py"), folder, "kan", "graph_attention", "capsules", "gelu"]
            subprocess.run(trace, check=True, capture_output=True)
            files = sorted(map(str, pathlib.Path(folder).iterdir()))
            compare = [sys.executable, str(peers / "partitions.py"), "--table", *files]
            done = subprocess.run(compare, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("beside PyTorch's: peak"), len(files))

    def test_what_is_saved_is_marked_and_saved_again(self) -> None:
        def function(x: Tensor, weight: Tensor) -> Tensor:
            values, order = torch.tanh(x @ weight).sin().sort()
            return (values.exp() * order).sum()

        inputs = [torch.randn(4, 16, requires_grad=True), torch.randn(16, 16)]
        joint, count = joint_of(function, *inputs)
        cut = "mode=min-cut,mark-saved=true"
        first = fxopt.partition(joint, num_fwd_outputs=count, cut=cut)
        self.assertTrue(any(node.meta.get("custom", {}).get("ap_must_save") for node in first[0].graph.nodes))
        again = fxopt.partition(joint, num_fwd_outputs=count, cut="mode=save-all")
        self.assertEqual([*map(names, again)], [*map(names, first)])

    def test_halves_keep_names_and_metadata(self) -> None:
        joint, count = joint_of(lambda x: (x.exp() * 2).sum(), torch.randn(4, requires_grad=True))
        values = {node.name: node.meta.get("val") for node in joint.graph.nodes}
        expected = [*map(names, default_partition(joint, None, num_fwd_outputs=count))]
        halves = fxopt.partition(joint, num_fwd_outputs=count)
        self.assertEqual([*map(names, halves)], expected)
        for node in (node for half in halves for node in half.graph.nodes if node.op != "output"):
            self.assertIs(node.meta.get("val"), values[node.name])

    def test_backward_repeats_the_draws_of_a_checkpoint(self) -> None:
        reached = {}
        for name, backend in (("PyTorch", by(default_partition)), ("fxopt", fxopt.backend)):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, x = CheckpointedDropout(), torch.randn(32, 16)
            compiled = torch.compile(model, backend=backend)
            saved = []
            with torch.autograd.graph.saved_tensors_hooks(lambda each, all_=saved: all_.append(each) or each, lambda each: each):
                torch.manual_seed(3)
                y = compiled(x)
            y.square().sum().backward()
            # The output also depends on the draws, and the next draw on the state of the generator.
            values = [y, torch.rand(4), *(each.grad for each in model.parameters())]
            reached[name] = [*map(Tensor.tolist, values)], sorted(each.nbytes for each in saved)
        self.assertEqual(reached["fxopt"], reached["PyTorch"])

    def test_only_draws_that_backward_repeats_save_their_state(self) -> None:
        def function(x: Tensor) -> Tensor:
            return F.dropout(x).sin().sum() + F.dropout(x * 2).sin().sum()

        joint, count = joint_of(function, torch.randn(4, 16, requires_grad=True))
        drawn = random_calls(joint)
        self.assertEqual(len(drawn), 2)
        drawn[0].meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
        order = [node.name for node in drawn]
        with self.subTest("a refused joint graph does not change"), self.assertRaises(fxopt.FxoptError):
            before = str(joint.graph)
            fxopt.partition(joint, num_fwd_outputs=count, cut="mode=unknown")
        self.assertEqual(str(joint.graph), before)
        for _ in range(2):  # a joint graph may be cut again
            halves = forward, _ = fxopt.partition(joint, num_fwd_outputs=count)
            self.assertEqual(
                [str(node.target) for half in halves for node in half.graph.nodes if "rng_state" in str(node.target)],
                ["run_and_save_rng_state", "run_with_rng_state"],
            )
            self.assertEqual([node.name for node in forward.graph.nodes if node.name in order], order)

    def test_a_draw_that_backward_does_not_read_stays_as_it_was(self) -> None:
        joint, count = joint_of(lambda x: (x + torch.rand_like(x)).sin().sum(), torch.randn(4, requires_grad=True))
        (draw,) = random_calls(joint)
        expected = draw.name, draw.target, draw.kwargs
        draw.meta["recompute"] = CheckpointPolicy.PREFER_RECOMPUTE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fxopt.FxoptWarning)
            halves = fxopt.partition(joint, num_fwd_outputs=count)
        (found,) = (node for node in halves[0].graph.nodes if node.name == draw.name)
        self.assertEqual((found.name, found.target, found.kwargs), expected)
        self.assertFalse([node for half in halves for node in half.graph.nodes if "rng_state" in str(node.target)])

    def test_only_equal_draws_from_a_state_are_taken_for_one_draw(self) -> None:
        joint, _ = joint_of(lambda x: (x * torch.rand_like(x)).sin().sum(), torch.randn(4, requires_grad=True))
        (draw,) = random_calls(joint)
        draw.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
        names = draws.expose_states(joint)
        self.assertEqual(draws.exposed_states(joint), names)
        kwargs, draw.kwargs = draw.kwargs, {**draw.kwargs, "dtype": torch.float64}
        self.assertEqual(draws.exposed_states(joint), set())
        draw.kwargs = kwargs
        (saved,) = (node for node in joint.graph.nodes if node.name in names)
        with joint.graph.inserting_before(draw):
            joint.graph.call_function(operator.getitem, (saved, 1))
        self.assertEqual(draws.exposed_states(joint), set())

    def test_forward_alone_gives_what_forward_gives(self) -> None:
        def function(x: Tensor, weight: Tensor) -> Tensor:
            return torch.tanh(F.dropout(x @ weight)).sin().sum()

        inputs = [torch.randn(4, 16, requires_grad=True), torch.randn(16, 16)]
        joint, count = joint_of(function, *inputs)
        before = [node.name for node in joint.graph.nodes]
        forward = fxopt.extract_forward(joint, num_fwd_outputs=count)
        self.assertEqual(before, [node.name for node in joint.graph.nodes])
        self.assertEqual(len(names(forward)[0]), 2)
        called = {str(node.target) for node in forward.graph.nodes}
        self.assertFalse(any("cos" in name or "backward" in name for name in called), called)
        torch.manual_seed(3)
        expected = joint(inputs, [torch.ones(())])[0]
        torch.manual_seed(3)
        self.assertTrue(torch.equal(forward(*inputs)[0], expected[0]))
        with self.assertRaisesRegex(ValueError, "extract_forward"):
            fxopt.partition(joint, num_fwd_outputs=count, cut="mode=inference")

    def test_halves_say_what_inductor_asks(self) -> None:
        def function(x: Tensor, weight: Tensor) -> Tensor:
            return torch.tanh(x @ weight).sin().sum()

        inputs = [torch.randn(4, 16, requires_grad=True), torch.randn(16, 16)]
        expected, found = (
            cut(joint_of(function, *inputs)[0], None, num_fwd_outputs=1, static_lifetime_input_indices=[1])
            for cut in (default_partition, fxopt.partitioner())
        )
        for theirs, ours in zip(expected, found):
            inputs_of = (half.graph.find_nodes(op="placeholder") for half in (theirs, ours))
            self.assertEqual(*([node.meta.get("is_static_input") for node in nodes] for nodes in inputs_of))
            outputs = [half.graph.output_node() for half in (theirs, ours)]
            self.assertIs(type(outputs[1].args[0]), type(outputs[0].args[0]))
            for key in ("desc", "output_stack_traces"):
                self.assertEqual(outputs[0].meta[key], outputs[1].meta[key])

    def test_inputs_after_calls_come_first(self) -> None:
        joint, count = joint_of(lambda x: x.exp().sum(), torch.randn(4, requires_grad=True))
        tangent = joint.graph.find_nodes(op="placeholder")[-1]
        next(node for node in joint.graph.nodes if node.op == "call_function").append(tangent)
        joint.recompile()
        backward = fxopt.partition(joint, num_fwd_outputs=count)[1]
        self.assertIn("tangents_1", names(backward)[0])

    def test_a_graph_without_tangents_has_nothing_in_backward(self) -> None:
        graph_module = torch.fx.symbolic_trace(lambda x: x + 1)
        forward, backward = fxopt.partition(graph_module, num_fwd_outputs=1)
        self.assertEqual([names(forward), names(backward)], [(["x"], ["add"]), ([], [])])

    def test_gradients_without_tangents_are_refused(self) -> None:
        graph_module = torch.fx.symbolic_trace(lambda x, y: (x + 1, y * 2))
        with self.assertRaises(fxopt.FxoptError) as caught:
            fxopt.partition(graph_module, num_fwd_outputs=1)
        self.assertEqual(caught.exception.code, "FX0803")

    def test_an_unknown_option_of_the_backend_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "no option pass; it has passes, cut and save"):
            fxopt.backend(torch.fx.symbolic_trace(lambda x: x + 1), [torch.ones(1)], options={"pass": "cse"})

    def test_a_pipeline_that_cuts_is_refused_before_the_cut(self) -> None:
        graph_module = torch.fx.symbolic_trace(lambda x: x + 1)
        for passes in ("remat,partition", "partition{mode=min-cut}", "cse, join"):
            with self.assertRaisesRegex(ValueError, "passes must not contain (partition|join): the graph is cut after them"):
                fxopt.partition(graph_module, num_fwd_outputs=1, passes=passes)

    def test_the_backend_saves_the_joint_graphs_it_is_given(self) -> None:
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                torch._dynamo.reset()
                compiled = torch.compile(model, backend=fxopt.backend, options={"save": folder})
                compiled(torch.randn(4, 8)).sum().backward()
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), ["joint_0.pb", "joint_1.pb"])
            step = fxopt.mem(str(pathlib.Path(folder) / "joint_1.pb"), "--steady")["graphs"][0]
            classes = {each["name"] for each in step["devices"][0]["by_class"]}
        self.assertLessEqual({"parameter", "gradient", "optimizer state"}, classes)

    def test_the_backend_has_the_peak_that_mem_predicts(self) -> None:
        layers = [nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)) for _ in range(6)]
        model, inputs = nn.Sequential(*layers), torch.randn(512, 64)
        held = sum(each.nbytes for each in (*model.parameters(), inputs))
        for passes in ("cse", "sac{policy=per-op,recompute-every=0},remat"):
            with self.subTest(passes), tempfile.TemporaryDirectory() as folder:
                torch._dynamo.reset()
                options = {"save": folder, "passes": passes}
                model.zero_grad()
                loss = torch.compile(lambda: model(inputs).square().mean(), backend=fxopt.backend, options=options)
                peak = held + bytes_above_start(model, loss)
                joint, result = f"{folder}/joint_0.pb", f"{folder}/result.pb"
                subprocess.run([str(setting.find_fxopt()), "opt", joint, "--passes", passes, "-o", result], check=True)
                graph = fxopt.mem(result)["graphs"][0]
            self.assertAlmostEqual(peak, graph["peak_bytes"], delta=64)  # scalars around the loss

    def test_the_model_of_readme_and_its_commands(self) -> None:
        section = (setting.ROOT / "README.md").read_text(encoding="utf-8").split("## Your own model")[1].split("\n## ")[0]
        code, commands = section.split("```\n")[1::2]
        torch._dynamo.reset()
        if "fxopt" not in torch._dynamo.list_backends(None):
            torch._dynamo.register_backend(fxopt.backend, name="fxopt")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            exec(code, {})
            for line in commands.splitlines():
                words = shlex.split(line, comments=True)
                self.assertEqual(words[0], "fxopt")
                done = subprocess.run([str(setting.find_fxopt()), *words[1:]], capture_output=True, text=True)
                self.assertIn(done.returncode, (0, 5) if "--budget" in words else (0,), done.stderr)


if __name__ == "__main__":
    unittest.main()
