"""A checkpointed step that does not mark the beginning of backward. remat finds it by itself, and
has the same result as behind infer-phase. Skipped without torch or the fxopt program."""

from __future__ import annotations

import contextlib
import itertools
import re
import unittest

from setting import ROOT, imports_torch, need_program

with imports_torch():
    import torch
    import torch.nn.functional as F
    from differential_parts import observe
    from differential_parts.optimize import copy_of
    from differential_parts.training import BackwardNodes
    from fxopt import bridge
    from fxopt.tool import find_fxopt
    from fxopt_program import Fxopt
    from small_graphs import Case
    from torch import Tensor, nn
    from torch.fx import GraphModule
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
need_program()

aten = torch.ops.aten
WIDTH, HEADS, CLASSES = 8, 2, 16
SAVED = (aten.mm.default, aten.addmm.default, aten._scaled_dot_product_flash_attention_for_cpu.default)
RECOMPUTE = (CheckpointPolicy.PREFER_RECOMPUTE, CheckpointPolicy.MUST_RECOMPUTE)
TOLD = ({}, {"kind": "forward_loss_backward"})


class Block(nn.Module):
    """Attention and an MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def save_products(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if op in SAVED else CheckpointPolicy.PREFER_RECOMPUTE


def recompute_products(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_RECOMPUTE if op in SAVED else CheckpointPolicy.PREFER_SAVE


class Step:
    """Two checkpointed blocks, a head, the loss, and the gradients of all parameters."""

    def __init__(self, policy: object) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(Block(), Block(), nn.Linear(WIDTH, CLASSES))
        self.policy, self.backward = policy, BackwardNodes()
        self.names, parameters = zip(*self.model.named_parameters())
        self.given = [*parameters, torch.randn(2, 4, WIDTH), torch.randint(CLASSES, (2, 4))]

    def inputs(self) -> list[Tensor]:
        return [value.detach().clone().requires_grad_(value.requires_grad) for value in self.given]

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        *parameters, x, target = inputs
        contexts = lambda: create_selective_checkpoint_contexts(self.policy)  # noqa: E731
        *blocks, head = self.model
        with nn.utils.stateless._reparametrize_module(self.model, dict(zip(self.names, parameters))), torch.enable_grad():
            for block in blocks:
                x = checkpoint(block, x, use_reentrant=False, context_fn=contexts)
            loss = F.cross_entropy(head(x).flatten(0, 1), target.flatten())
            with self.backward:
                gradients = torch.autograd.grad(loss, parameters)
            return [loss.detach(), *gradients]

    def trace(self, *, keeps_meta: bool) -> GraphModule:
        """keeps_meta: the trace keeps the metadata of nodes. From the first checkpoint on, each
        node then has a tag, including backward nodes."""
        torch.fx.traceback.current_meta.clear()
        with torch.fx.traceback.preserve_node_meta() if keeps_meta else contextlib.nullcontext():
            graph_module = make_fx(self, tracing_mode="fake", _allow_non_fake_inputs=True)(*self.inputs())
        torch.fx.traceback.current_meta.clear()
        return graph_module


def documented() -> list[str]:
    """The pipelines with remat in README and on the help pages."""
    pages = [ROOT / "README.md", *sorted((ROOT / "cli/topics").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = re.findall(r"--passes '([^']+)'", text) + re.findall(r"(?:apply\(gm, |graph_pass\()\"([^\"]+)\"", text)
    shown += re.findall(r"Default pipeline: `([^`]+)`", text)
    return [passes for passes in shown if "remat" in passes]


SHORT = ("remat", "remat,dce", "sac{policy=full},remat", "cse,sac{policy=per-op},remat,dce")
PIPELINES = tuple(dict.fromkeys((*SHORT, *documented())))


class Unmarked(Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)

    def each_trace(self):
        for policy in (save_products, recompute_products):
            for keeps_meta in (False, True):
                with self.subTest(policy=policy.__name__, keeps_meta=keeps_meta):
                    step = Step(policy)
                    yield step, step.trace(keeps_meta=keeps_meta)

    def seen(self, step, function):
        seen = observe.execute(function, step.inputs(), observe.attributes_of(function) if function is not step else {})
        self.assertIsNone(seen.error)
        return seen

    def differences(self, step, graph_module):
        return observe.differences(self.seen(step, step), self.seen(step, graph_module))

    def test_readme_has_pipelines(self):
        self.assertGreaterEqual(len(documented()), 4)

    def test_the_trace_is_tagged_and_not_marked(self):
        for step, graph_module in self.each_trace():
            nodes = graph_module.graph.nodes
            self.assertFalse([node for node in nodes if "autograd_backward" in node.meta or "partitioner_tag" in node.meta])
            self.assertGreater(sum(node.meta.get("recompute") in RECOMPUTE for node in nodes), 10)
            self.assertEqual(self.differences(step, graph_module), [])

    def opt(self, passes):
        """The number of recomputed nodes, and the bytes of the output file."""
        target = self.folder / "after.pb"
        report = Fxopt(find_fxopt()).opt(self.folder / "step.pb", target, passes)
        return report["after"]["recomputed"], target.read_bytes()

    def test_files_are_the_same_with_and_without_infer_phase(self):
        for step, graph_module in self.each_trace():
            for told, passes in itertools.product(TOLD, PIPELINES):
                with self.subTest(passes, **told):
                    bridge.save(graph_module, self.folder / "step.pb", **told)
                    count, written = self.opt(passes)
                    self.assertGreater(count, 0)
                    self.assertEqual(self.differences(step, bridge.load(self.folder / "after.pb")), [])
                    self.assertEqual((count, written), self.opt(f"infer-phase,{passes}"))

    def test_apply_does_what_it_does_behind_infer_phase_and_where_backward_is_marked(self):
        for step, graph_module in self.each_trace():
            marked = copy_of(graph_module)
            for node in marked.graph.nodes:
                if node.name in step.backward.names:
                    node.meta["autograd_backward"] = True
            for told in TOLD:
                made = bridge.apply(copy_of(graph_module), "remat,dce", **told)
                self.assertGreater(sum("_recomputed" in node.name for node in made.graph.nodes), 0)
                self.assertEqual(self.differences(step, made), [])
                inferred = bridge.apply(copy_of(graph_module), "infer-phase,remat,dce", **told)
                self.assertEqual(made.code, inferred.code)
                self.assertEqual(*([node.meta.get("autograd_backward") for node in x.graph.nodes] for x in (made, inferred)))
                self.assertEqual(made.code, bridge.apply(copy_of(marked), "remat,dce", **told).code)


if __name__ == "__main__":
    unittest.main()
