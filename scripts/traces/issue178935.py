"""The two programs of pytorch issue 178935: traced selective checkpointing recomputes nothing."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from traces import Graph, Traced, random_like, seeded


def checkpointed_step(x: Tensor, w1: Tensor, w2: Tensor, context_fn: Callable | None) -> tuple[Tensor, ...]:
    """Returns the sum of a perceptron in one checkpoint region (product, gelu, product) and the
    gradients of its weights."""

    def layer(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
        return F.gelu(x @ w1) @ w2

    told = {} if context_fn is None else {"context_fn": context_fn}
    loss = checkpoint(layer, x, w1, w2, use_reentrant=False, **told).sum()
    return (loss, *torch.autograd.grad(loss, [w1, w2]))


def recompute_products() -> tuple[object, object]:
    """Selective checkpointing that recomputes products and saves everything else."""

    def policy(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
        is_product = op == torch.ops.aten.mm.default
        return CheckpointPolicy.PREFER_RECOMPUTE if is_product else CheckpointPolicy.MUST_SAVE

    return create_selective_checkpoint_contexts(policy)


def trace(context_fn: Callable | None) -> Traced:
    torch.fx.traceback.current_meta.clear()  # an earlier trace leaves its tags there
    x = torch.randn(2, 4)
    w1, w2 = torch.randn(4, 8, requires_grad=True), torch.randn(8, 4, requires_grad=True)

    def step(x: Tensor, w1: Tensor, w2: Tensor) -> tuple[Tensor, ...]:
        return checkpointed_step(x, w1, w2, context_fn)

    graph_module = make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(x, w1, w2)
    names = [node.name for node in graph_module.graph.nodes if node.op == "placeholder"]
    parameters = [{"role": "parameter", "fqn": fqn} for fqn in ("w1", "w2")]
    gradients = [{"role": "gradient", "of": of, "fqn": fqn} for of, fqn in zip(names[1:], ("w1", "w2"))]
    return graph_module, {
        "kind": "forward_loss_backward",
        "roles": [{"role": "input", "user_index": 0}, *parameters],
        "outputs": ["loss", *gradients],
    }


def inputs() -> list[object]:
    generator = seeded()
    return [random_like(torch.empty(size), generator) for size in ((2, 4), (4, 8), (8, 4))]


GRAPHS = {
    "issue178935_vanilla": Graph(
        lambda: trace(None),
        "the first program of pytorch issue 178935: plain activation checkpointing under make_fx. The graph already"
        " contains the recomputation. No node has a recompute tag or is marked backward",
        inputs,
    ),
    "issue178935_selective": Graph(
        lambda: trace(recompute_products),
        "the second program of pytorch issue 178935: selective checkpointing that prefers to recompute matrix products."
        " The tags are unchanged since the trace. Nothing is recomputed, and no node is marked backward",
        inputs,
    ),
}
