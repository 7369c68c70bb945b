"""Graphs of optimizers, with regions of their own, joint graphs, flex attention."""

from __future__ import annotations

import functools
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention import flex_attention as front
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from kinds_parts.tracing import Function, Traced, compiled, gradients, graph, traced, traces

aten = torch.ops.aten


# ---- optimizers


def parameters() -> list[Tensor]:
    return [torch.randn(3, 4), torch.randn(4), torch.randn(2, 2)]


@traces("optimizers", lambda: [*parameters(), *parameters(), *parameters()])
def momentum_by_foreach(*given: Tensor) -> list[Tensor]:
    own, found, momenta = list(given[:3]), list(given[3:6]), list(given[6:])
    norm = torch.stack(torch._foreach_norm(found)).norm()
    torch._foreach_mul_(found, (1.0 / (norm + 1e-6)).clamp(max=1.0))
    torch._foreach_mul_(momenta, 0.9)
    torch._foreach_add_(momenta, found)
    torch._foreach_add_(own, momenta, alpha=-0.1)
    return [norm, *torch._foreach_norm(own)]


@graph("optimizers")
def fused_adam() -> Traced:
    def step(*given: Tensor) -> list[Tensor]:
        own, found, first, second, steps = (list(given[i : i + 3]) for i in range(0, 15, 3))
        before = own[0].sum()
        torch._foreach_add_(steps, 1)
        told = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": False, "maximize": False}
        torch._fused_adamw_(own, found, first, second, [], steps, **told)
        return [before, own[0].sum(), steps[0] + 1]

    zeros = [torch.zeros_like(value) for value in parameters() + parameters()]
    return traced(step, *parameters(), *parameters(), *zeros, *(torch.tensor(2.0) for _ in range(3)))


@traces(
    "optimizers",
    lambda: [torch.randn(4, 3), torch.randn(3), torch.randn(5, 4), torch.randn(5, 3)],
    told={"kind": "forward_loss_backward"},
)
def fused_sgd_after_a_step(w: Tensor, b: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
    """Gradients and their use in one graph, which writes the parameters that forward reads."""
    own = [w.detach().requires_grad_(), b.detach().requires_grad_()]
    loss = F.mse_loss(torch.tanh(x @ own[0] + own[1]), y)
    found = gradients(loss, own)
    w.sub_(found[0], alpha=0.1)
    b.sub_(found[1] * 0.1)
    return [loss.detach(), F.mse_loss(torch.tanh(x @ w + b), y)]


def compiled_optimizer(make: Function) -> Traced:
    own = [nn.Parameter(value) for value in parameters()]
    optimizer = make(own)
    for value in own:
        value.grad = torch.randn_like(value)
    optimizer.step()
    return compiled(lambda: optimizer.step(), which="inference", fullgraph=False)


@graph("optimizers")
def compiled_adam() -> Traced:
    return compiled_optimizer(lambda own: torch.optim.Adam(own, lr=0.01, amsgrad=True, foreach=True))


@graph("optimizers")
def compiled_momentum() -> Traced:
    return compiled_optimizer(
        lambda own: torch.optim.SGD(own, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, foreach=False)
    )


@graph("optimizers")
def compiled_rmsprop() -> Traced:
    return compiled_optimizer(lambda own: torch.optim.RMSprop(own, lr=0.1, momentum=0.5, centered=True))


# ---- regions


@traces("regions", lambda: [torch.randn(4, 4), torch.randn(4, 4)])
def branches(a: Tensor, b: Tensor) -> tuple:
    def first(x: Tensor, y: Tensor) -> tuple:
        return x.sin() @ y, x + 1.0

    def second(x: Tensor, y: Tensor) -> tuple:
        return x.cos() @ y.t(), x * 2.0

    once = torch.cond(a.sum() > 0, first, second, (a, b))
    again = torch.cond(a.sum() > 0, first, second, (a, b))
    other = torch.cond(b.sum() > 0, first, second, (a, b))
    return *once, *again, *other


@traces("regions", lambda: [torch.randn(3, 4)])
def loops(a: Tensor) -> tuple:
    count = torch.zeros((), dtype=torch.int64)
    found = while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x.sin() + x), (count, a))
    return *found, a.sin() + a


@traces("regions", lambda: [torch.randn(3, 4), torch.zeros(4)])
def scans_and_maps(a: Tensor, start: Tensor) -> tuple:
    carried, every = scan(lambda carry, x: (carry + x, carry * x), start, a)
    return carried, every, map_over(lambda x, y: x * y + 1.0, a, start), a.cumsum(0)


@torch.compiler.nested_compile_region
def _region(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x @ w) + x.sin()


@traces("regions", lambda: [torch.randn(4, 4), torch.randn(4, 4), torch.randn(4, 4)], by=compiled, which="inference")
def nested_regions(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return _region(_region(x, w), v) + _region(x, w)


@graph("regions")
def joint_graph_of_nested_regions() -> Traced:
    x, w, v = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    return compiled(lambda x, w, v: _region(_region(_region(x, w), v), w).sum(0), x, w, v, which="joint")


@graph("regions")
def joint_graph_of_a_region() -> Traced:
    """A region's joint graph as AOTAutograd gives it to a partitioner: its inputs have other names,
    and no descriptors."""
    x, w, v = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    return compiled(lambda x, w, v: _region(_region(_region(x, w), v), w).sum(0), x, w, v, which="region")


@graph("regions")
def checkpointed_joint_graph() -> Traced:
    def block(x: Tensor, w: Tensor) -> Tensor:
        return F.dropout(torch.sin(x @ w), 0.3).exp() @ w.t()

    def function(x: Tensor, w: Tensor) -> Tensor:
        return checkpoint(block, checkpoint(block, x, w, use_reentrant=False), w, use_reentrant=False).sum(0)

    return compiled(function, torch.randn(4, 4) * 0.1, (torch.randn(4, 4) * 0.1).requires_grad_(), which="joint")


@graph("regions")
def selective_checkpoint() -> Traced:
    def policy(_: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op is aten.mm.default else CheckpointPolicy.MUST_RECOMPUTE

    def block(x: Tensor, w: Tensor) -> Tensor:
        return torch.sin(torch.relu(x @ w).cos() @ w.t())

    def function(x: Tensor, w: Tensor) -> Tensor:
        told = {"use_reentrant": False, "context_fn": functools.partial(create_selective_checkpoint_contexts, policy)}
        return checkpoint(block, checkpoint(block, x, w, **told), w, **told).pow(2)

    return compiled(function, torch.randn(4, 4), torch.randn(4, 4, requires_grad=True), which="joint")


@traces("regions", lambda: [torch.randn(4, 4), torch.randn(4, 4)], by=compiled, which="dynamo")
def checkpoint_as_dynamo_has_it(x: Tensor, w: Tensor) -> tuple:
    h = checkpoint(lambda y: torch.sin(y @ w), x, use_reentrant=False)
    return h, torch.cond(h.sum() > 0, lambda y: y + 1.0, lambda y: y - 1.0, (h,)), x.sin()


# ---- joint graphs


@traces(
    "joint graphs",
    lambda: [torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)],
    by=compiled,
    which="joint",
)
def shared_weights(x: Tensor, w: Tensor) -> tuple:
    h = torch.tanh(x @ w)
    h = torch.relu(h @ w) * h
    return h.softmax(-1), h.view(-1).sum(), h.sin().detach()


@traces(
    "joint graphs",
    lambda: [torch.randn(4, 3), torch.randn(3, 3, requires_grad=True), torch.zeros(3), torch.zeros((), dtype=torch.int64)],
    by=compiled,
    which="joint",
)
def writes_its_inputs(x: Tensor, w: Tensor, state: Tensor, seen: Tensor) -> Tensor:
    state.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
    h = torch.tanh((x - state) @ w)
    seen.add_(1)
    return h * h.exp()


@traces(
    "joint graphs",
    lambda: [torch.randn(6, 4, requires_grad=True), torch.tensor([0, 1, 5, 1]), torch.randn(4, requires_grad=True)],
    by=compiled,
    which="joint",
)
def indexes_and_norms(table: Tensor, i: Tensor, g: Tensor) -> Tensor:
    h = F.layer_norm(F.embedding(i, table), (4,), g)
    return F.cross_entropy(h @ table.t(), i) + h.sort(-1)[0].pow(2).mean() + F.max_pool1d(h[None], 2).sum()


@traces(
    "joint graphs",
    lambda: [torch.randn(2, 3, 6, 6), torch.randn(3, 3, 3, 3, requires_grad=True), torch.randn(3, requires_grad=True)],
    by=compiled,
    which="joint",
)
def convolution_in_half_precision(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        h = F.gelu(F.conv2d(x, w, b, padding=1))
        return F.adaptive_avg_pool2d(F.relu(F.conv2d(h, w)), 2).float().sum((2, 3))


@graph("joint graphs")
def own_rule_of_autograd() -> Traced:
    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            ctx.save_for_backward(x, x.exp())
            return x * x

        @staticmethod
        def backward(ctx: object, g: Tensor) -> Tensor:
            x, e = ctx.saved_tensors
            return 2 * x * g + e * 0.1

    return compiled(lambda x: Squared.apply(x.sin()).cumsum(0) + x.exp(), torch.randn(4, 4, requires_grad=True), which="joint")


@traces("joint graphs", lambda: [torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)], by=compiled, which="joint")
def views_and_aliases_are_returned(x: Tensor, w: Tensor) -> tuple:
    h = x @ w
    return h.view(-1), h.sin(), w.t(), x[0], h.t().exp()[1:]


# ---- flex attention


def flexed(function: Function, *inputs: Tensor, which: str) -> Traced:
    """On the CPU the frontend refuses gradients; the operators below it support them."""
    with mock.patch.object(front, "_validate_device", lambda *_: None):
        return compiled(function, *inputs, which=which)


def flex(score: Function | None = None, mask: Function | None = None) -> tuple[Function, list[Tensor]]:
    block = create_block_mask(mask, None, None, 128, 128, device="cpu") if mask is not None else None

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q.sin(), k, v, score_mod=score, block_mask=block).tanh()

    return function, [torch.randn(1, 2, 128, 16, requires_grad=True) for _ in range(3)]


@graph("flex attention")
def flex_of_causal_blocks() -> Traced:
    function, inputs = flex(mask=lambda b, h, q, k: q >= k)
    return flexed(function, *inputs, which="joint")


@graph("flex attention")
def flex_with_scores() -> Traced:
    function, inputs = flex(score=lambda s, b, h, q, k: s + (q - k) * 0.01)
    return flexed(function, *inputs, which="joint")


@graph("flex attention")
def flex_forward() -> Traced:
    function, inputs = flex(score=lambda s, b, h, q, k: s * 0.5, mask=lambda b, h, q, k: (q - k).abs() < 40)
    return flexed(function, *(value.detach() for value in inputs), which="inference")


@graph("flex attention")
def flex_backward() -> Traced:
    function, inputs = flex(mask=lambda b, h, q, k: q >= k)
    return flexed(function, *inputs, which="backward")


@graph("flex attention")
def flex_with_a_learned_bias() -> Traced:
    bias = torch.randn(2, requires_grad=True)

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h]).sum(-1)

    return flexed(function, *flex()[1], which="joint")
