#!/usr/bin/env python3
"""Graphs on which a pass of torchtitan 0.3.0 fails, run through that pass and through fxopt and
checked.

    scripts/titan/weak_graphs.py [--json FILE] [NAME ...]

Each graph is built twice from one function. A pass fails if it raises or if the graph fails the
check.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import pathlib
import sys
from collections.abc import Callable

import torch
import torch._functorch._activation_offloading.offload_ops  # noqa: F401  registers the ops of ao
from torch.fx import GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import llama
from fxopt import bridge, tool
from torchtitan.experiments.graph_trainer import memory_policy, remove_noop_passes
from torchtitan.experiments.graph_trainer.selective_activation_remat import selective_activation_remat_pass

aten = torch.ops.aten
ao = torch.ops.ao
LONG_CHAIN = 1200

Pass = Callable[[GraphModule], object]
Check = Callable[[GraphModule, GraphModule], str]  # (before, after) -> the error, or ""


@dataclasses.dataclass(frozen=True)
class Weakness:
    """One graph, torchtitan's pass, fxopt's pipeline, and the check that both must satisfy."""

    name: str
    build: Callable[[], GraphModule]
    titan: Pass
    fxopt: str
    check: Check
    claim: str


class Builder:
    """Builds a graph of calls with the marks of torchtitan's tracer."""

    def __init__(self, *inputs: str) -> None:
        self.graph = torch.fx.Graph()
        self.inputs = [self.graph.placeholder(name) for name in inputs]

    def forward(self, target: object, *args: object, recompute: bool = False, module: str = "layers.0") -> Node:
        node = self.graph.call_function(target, args)
        node.meta["custom"] = {"module_fqn": module}
        if recompute:
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
        return node

    def backward(self, target: object, *args: object, module: str = "layers.0") -> Node:
        node = self.forward(target, *args, module=module)
        node.meta["autograd_backward"] = True
        return node

    def finish(self, *results: Node) -> GraphModule:
        self.graph.output(results)
        return GraphModule(torch.nn.Module(), self.graph)


# ---- checks


def copies(graph_module: GraphModule) -> list[Node]:
    return [node for node in graph_module.graph.nodes if node.name.endswith("_recomputed")]


def is_valid(_before: GraphModule, after: GraphModule) -> str:
    try:
        after.graph.lint()
    except RuntimeError as error:
        return f"invalid graph: {str(error).splitlines()[0][:40]}"
    return ""


def computes_the_same(before: GraphModule, after: GraphModule) -> str:
    """Runs both on equal inputs. Outputs and inputs must be bitwise equal afterwards."""
    if wrong := is_valid(before, after):
        return wrong
    ours, theirs = _inputs(before), _inputs(before)
    expected, actual = _run(before, ours), _run(after, theirs)
    if len(expected) != len(actual):
        return f"{len(actual)} outputs instead of {len(expected)}"
    pairs = list(zip(expected, actual)) + list(zip(ours, theirs))
    if not all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs):
        return "values differ"
    return ""


def _run(graph_module: GraphModule, inputs: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return graph_module(*inputs)


def _inputs(graph_module: GraphModule) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    count = sum(node.op == "placeholder" for node in graph_module.graph.nodes)
    return [torch.randn(8, 8, generator=generator) for _ in range(count)]


def recomputes(count: int) -> Check:
    """Returns a check that the graph has `count` recomputed copies and equal results."""

    def check(before: GraphModule, after: GraphModule) -> str:
        made = len(copies(after))
        if again := [node.name for node in copies(after) if node.name.count("_recomputed") > 1]:
            return f"copy of a copy: {again[0]}"
        wrong = computes_the_same(before, after)
        return wrong or ("" if made == count else f"{made} copies instead of {count}")

    return check


def has_no(target: object) -> Check:
    def check(before: GraphModule, after: GraphModule) -> str:
        left = sum(node.target is target for node in after.graph.nodes)
        return computes_the_same(before, after) or (f"{left} x {target} left" if left else "")

    return check


def reads_reload(before: GraphModule, after: GraphModule) -> str:
    """Checks that no copy reads, even through a view, memory freed by the wait behind an
    offload."""
    if wrong := is_valid(before, after):
        return wrong
    offloaded = {node.args[0] for node in after.graph.nodes if node.target is ao.offload.default}
    for node in copies(after):
        for source in node.all_input_nodes:
            while source.target is aten.reshape.default:
                source = source.args[0]
            if source in offloaded:
                return f"{node.name} reads freed memory"
    return "" if copies(after) else "no copies"


def is_tagged(name: str) -> Check:
    def check(_before: GraphModule, after: GraphModule) -> str:
        untagged = [n.name for n in after.graph.nodes if n.name.startswith(name) and "recompute" not in n.meta]
        return f"{', '.join(untagged)} untagged" if untagged else ""

    return check


def keeps_no_tagged_value(before: GraphModule, after: GraphModule) -> str:
    """Checks that backward reads no forward value tagged for recompute, and that a step's results
    are bitwise equal."""
    if wrong := is_valid(before, after):
        return wrong
    if not all(torch.equal(a, b) for a, b in zip(before.meta["run"](), after.meta["run"](), strict=True)):
        return "values differ"
    recompute = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)
    kept = [
        node
        for node in after.graph.nodes
        if node.meta.get("recompute") in recompute
        and not node.meta.get("autograd_backward")
        and any(user.meta.get("autograd_backward") for user in node.users)
        and not _is_view_of_input(node)
    ]
    return f"{len(kept)} values kept, {len(copies(after))} copies" if kept else ""


def _is_view_of_input(node: Node) -> bool:
    while node.op == "call_function" and getattr(node.target, "is_view", False):
        node = node.args[0]
    return node.op == "placeholder"


# ---- graphs


def residual() -> GraphModule:
    """Two layers x + gelu(x @ w). Autograd's gradient sum in the middle of backward is labelled
    "loss"."""
    b = Builder("x", "w", "g")
    x, w, g = b.inputs
    mm0 = b.forward(aten.mm.default, x, w, recompute=True)
    r0 = b.forward(aten.add.Tensor, x, b.forward(aten.gelu.default, mm0, recompute=True))
    mm1 = b.forward(aten.mm.default, r0, w, recompute=True, module="layers.1")
    r1 = b.forward(aten.add.Tensor, r0, b.forward(aten.gelu.default, mm1, recompute=True, module="layers.1"))
    d1 = b.backward(aten.gelu_backward.default, g, mm1, module="layers.1")
    sum1 = b.backward(aten.add.Tensor, g, b.backward(aten.mm.default, d1, w, module="layers.1"), module="loss")
    d0 = b.backward(aten.gelu_backward.default, sum1, mm0)
    sum0 = b.backward(aten.add.Tensor, sum1, b.backward(aten.mm.default, d0, w), module="loss")
    return b.finish(r1, sum0)


def shared_with_loss() -> GraphModule:
    """One recompute-tagged value, read by the backward of the loss and of a later layer."""
    b = Builder("x", "w")
    x, w = b.inputs
    a = b.forward(aten.mm.default, x, w, recompute=True)
    of_loss = b.backward(aten.mul.Tensor, a, x, module="loss")
    of_layer = b.backward(aten.mul.Tensor, a, of_loss)
    return b.finish(of_loss, of_layer)


def below_lm_head() -> GraphModule:
    """The backward of a module below lm_head, a forward node, then the backward of a layer."""
    b = Builder("x", "w")
    x, w = b.inputs
    head = b.forward(aten.mm.default, x, w, recompute=True, module="lm_head.proj")
    a = b.forward(aten.mm.default, w, x, recompute=True)
    of_head = b.backward(aten.mul.Tensor, head, x, module="lm_head.proj")
    between = b.forward(aten.neg.default, x)
    of_layer = b.backward(aten.mul.Tensor, a, x)
    return b.finish(of_head, between, of_layer)


def two_regions() -> GraphModule:
    """Two runs of backward nodes with a forward node in between, as with microbatches or chunks."""
    b = Builder("x", "w")
    x, w = b.inputs
    a0 = b.forward(aten.mm.default, x, w, recompute=True)
    a1 = b.forward(aten.mm.default, w, x, recompute=True)
    return b.finish(
        b.backward(aten.mul.Tensor, a0, x), b.forward(aten.neg.default, x), b.backward(aten.mul.Tensor, a1, x)
    )


def written_between() -> GraphModule:
    """An operand of the recompute-tagged product is changed in place before backward."""
    b = Builder("x", "buffer")
    x, buffer = b.inputs
    a = b.forward(aten.mul.Tensor, x, buffer, recompute=True)
    b.forward(aten.add_.Tensor, buffer, 1)
    return b.finish(b.backward(aten.mul.Tensor, a, x))


def recomputed_once() -> GraphModule:
    b = Builder("x", "w")
    x, w = b.inputs
    a = b.forward(aten.mm.default, x, w, recompute=True)
    return b.finish(b.backward(aten.mul.Tensor, a, x))


def unneeded_draw() -> GraphModule:
    """A value to recompute, and a random value with the same tag that backward does not read."""
    b = Builder("x", "w")
    x, w = b.inputs
    a = b.forward(aten.mm.default, x, w, recompute=True)
    noise = b.forward(aten.rand_like.default, x, recompute=True)
    return b.finish(noise, b.backward(aten.mul.Tensor, a, x))


def chain() -> GraphModule:
    """A chain of recompute-tagged nodes. Backward reads the last one."""
    b = Builder("x", "y")
    node, y = b.inputs
    for _ in range(LONG_CHAIN):
        node = b.forward(aten.neg.default, node, recompute=True)
    return b.finish(b.backward(aten.mul.Tensor, node, y))


def view_of_offloaded() -> GraphModule:
    """An offloaded value, a saved view of it, and a user of the view that is recomputed after the
    offload."""
    b = Builder("x", "w", "g")
    x, w, g = b.inputs
    f = b.forward(aten.mm.default, x, w)
    f.meta["recompute"] = CheckpointPolicy.MUST_CPU_OFFLOAD
    view = b.forward(aten.reshape.default, f, [4, 16])
    view.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    act = b.forward(aten.gelu.default, view, recompute=True, module="layers.1")
    host = b.forward(ao.wait_tensor.default, b.forward(ao.offload.default, f), f)
    of_act = b.backward(aten.mul.Tensor, act, act, module="layers.1")
    back = b.backward(ao.wait_tensor.default, b.backward(ao.reload.default, host, torch.device("cuda")))
    return b.finish(of_act, b.backward(aten.mul.Tensor, back, g))


def _sliced(*args: object, **kwargs: object) -> GraphModule:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(8, 8, device="meta")
    graph.output((graph.call_function(aten.slice.Tensor, (x, *args), kwargs),))
    return GraphModule(torch.nn.Module(), graph)


def traced_detach() -> GraphModule:
    """A detach, as PyTorch 2.15 traces it."""
    b = Builder("x")
    alias = b.forward(aten.alias.default, b.forward(aten.relu.default, *b.inputs))
    return b.finish(b.forward(aten.neg.default, alias))


def loss_scaler() -> GraphModule:
    b = Builder("x")
    return b.finish(b.forward(aten.relu.default, *b.inputs, module="loss_scaler"))


def _twice(graph_module: GraphModule) -> None:
    selective_activation_remat_pass(graph_module)
    selective_activation_remat_pass(graph_module)


def _titan_full(graph_module: GraphModule) -> None:
    memory_policy.tag_sac_policy(graph_module, policy_fn=memory_policy._make_full_memory_policy())
    selective_activation_remat_pass(graph_module)


_remat = selective_activation_remat_pass
_slices = remove_noop_passes.remove_identity_slice_pass

WEAKNESSES = [
    Weakness("llama debug model, full recompute", llama.trace, _titan_full, "sac{policy=full},remat", keeps_no_tagged_value,
             "no tagged value kept, same loss and gradients"),
    Weakness("residual layers, gradient sums labelled loss", residual, _remat, "remat", recomputes(2),
             "2 copies, same values"),
    Weakness("value shared by backward of loss and layer", shared_with_loss, _remat, "remat", recomputes(1),
             "1 copy, valid graph, same values"),
    Weakness("backward below lm_head before a layer's", below_lm_head, _remat, "remat", recomputes(2),
             "2 copies, same values"),
    Weakness("two backward regions", two_regions, _remat, "remat", recomputes(2), "2 copies, same values"),
    Weakness("input changed in place before backward", written_between, _remat, "remat", computes_the_same,
             "same values"),
    Weakness("remat run twice", recomputed_once, _twice, "remat,remat", recomputes(1), "1 copy of the original"),
    Weakness("tag on a random op that backward does not read", unneeded_draw, _remat, "remat", recomputes(1),
             "1 copy, same values"),
    Weakness(f"chain of {LONG_CHAIN} nodes to recompute", chain, _remat, "remat", recomputes(LONG_CHAIN),
             f"{LONG_CHAIN} copies, same values"),
    Weakness("saved view of an offloaded value", view_of_offloaded, _remat, "remat", reads_reload,
             "no copy reads freed memory"),
    Weakness("slice(x, 0, start=2)", lambda: _sliced(0, start=2), _slices, "canonicalize", computes_the_same,
             "same values"),
    Weakness("slice(x, 0, 0, None)", lambda: _sliced(0, 0, None), _slices, "canonicalize{compat=torch}",
             has_no(aten.slice.Tensor), "slice gone, same values"),
    Weakness("detach traced as alias", traced_detach, remove_noop_passes.remove_detach_pass, "canonicalize",
             has_no(aten.alias.default), "alias gone, same values"),
    Weakness("module named loss_scaler", loss_scaler, lambda gm: memory_policy.tag_sac_policy(gm), "sac",
             is_tagged("relu"), "relu tagged"),
]  # fmt: skip


# ---- checking


def judge(weakness: Weakness, by: Pass) -> str:
    """Returns the error of the pass `by` on this graph; empty if the check holds."""
    graph_module = weakness.build()
    try:
        by(graph_module)
    except Exception as error:  # any exception is the pass's failure
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:36]}"
    graph_module.recompile()
    return weakness.check(weakness.build(), graph_module)


def run(names: list[str]) -> list[dict[str, str]]:
    rows = []
    for weakness in WEAKNESSES:
        if names and weakness.name not in names:
            continue
        row = {"graph": weakness.name, "check": weakness.claim, "titan": judge(weakness, weakness.titan)}
        row["fxopt"] = judge(weakness, lambda gm, pipeline=weakness.fxopt: bridge.apply(gm, pipeline))
        rows.append(row)
    return rows


def print_rows(rows: list[dict[str, str]]) -> None:
    cells = [("graph", "holds when", "torchtitan", "fxopt")]
    cells += [(r["graph"], r["check"], r["titan"] or "holds", r["fxopt"] or "holds") for r in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description="Run graphs on which torchtitan's passes fail through torchtitan and fxopt.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the graphs to run (default: all)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows to this file")
    options = parser.parse_args()
    if tool.find_fxopt() is None:
        parser.error("no fxopt program: set FXOPT, or put fxopt on PATH")
    logging.disable(logging.INFO)  # silences torchtitan's passes
    rows = run(options.names)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print_rows(rows)
    return 1 if any(row["fxopt"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
