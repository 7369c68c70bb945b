"""Layers and losses of random training steps. A layer takes the activation (two dimensions, as wide
as WIDTH), its parameters and its state, and returns the next activation. Some write in place, in
forward or in backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from differential_parts.collectives import join_group
from differential_parts.programs import WORLD, aten

WIDTH = 4
CLASSES = 4


@dataclass(frozen=True)
class Block:
    """function(h, *parameters, *state); sizes of its parameters and of the state that it writes."""

    function: Callable[..., Tensor]
    parameters: tuple[tuple[int, ...], ...] = ()
    state: tuple[tuple[int, ...], ...] = ()


SQUARE = (WIDTH, WIDTH)
ROW = (WIDTH,)
ROWS, COLUMNS = (WIDTH // WORLD, WIDTH), (WIDTH, WIDTH // WORLD)  # one rank's shard of a square


class WritesItsView(torch.autograd.Function):
    """Saves a view of its result and writes the result in backward before the view is read."""

    @staticmethod
    def forward(ctx, x):
        result = x.sin()
        ctx.result, ctx.view = result, result.view(-1)
        return result * 2.0

    @staticmethod
    def backward(ctx, gradient):
        ctx.result.mul_(3.0)
        return gradient * ctx.view.view(gradient.shape)


class WritesWhatItHasRead(torch.autograd.Function):
    """Reads saved values, then writes them, both before any gradient is read."""

    @staticmethod
    def forward(ctx, x):
        ctx.result = x.sin()
        return ctx.result * 2.0

    @staticmethod
    def backward(ctx, gradient):
        side = ctx.result.exp()
        ctx.result.mul_(3.0)
        return gradient * side * ctx.result


class WritesWhatItSaved(torch.autograd.Function):
    """Writes the gradient into the memory of a saved value."""

    @staticmethod
    def forward(ctx, x):
        ctx.saved = x.sigmoid()
        return ctx.saved * x

    @staticmethod
    def backward(ctx, gradient):
        part = ctx.saved.clone() if gradient.numel() == 0 else ctx.saved
        return part.mul_(gradient)


class FillsPart(torch.autograd.Function):
    """Backward zeroes a row of a saved value through a view, and reads the value twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.saved = x.exp().clamp(max=4.0)
        return ctx.saved + x

    @staticmethod
    def backward(ctx, gradient):
        first = ctx.saved.sum()
        ctx.saved.view(-1)[:2].zero_()
        return gradient * ctx.saved + first


class WritesItsGradient(torch.autograd.Function):
    """Backward changes the gradient that it receives."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.cos())
        return x.tanh()

    @staticmethod
    def backward(ctx, gradient):
        (cosine,) = ctx.saved_tensors
        return gradient.contiguous().mul_(cosine)


class FusedCrossEntropy(torch.autograd.Function):
    """Turns the softmax into the gradient in place; how: `sub_` and `mul_`, scatter or
    index_put."""

    @staticmethod
    def forward(ctx, logits, target, how):
        probabilities = torch.softmax(logits, -1)
        ctx.probabilities, ctx.target, ctx.how = probabilities, target, how
        ctx.view = probabilities.view(-1)
        return -probabilities.gather(1, target.unsqueeze(1)).log().mean()

    @staticmethod
    def backward(ctx, gradient):
        softmax, target = ctx.probabilities, ctx.target
        if ctx.how == "sub":
            softmax.sub_(F.one_hot(target, softmax.shape[1]).to(softmax.dtype))
        elif ctx.how == "scatter":
            softmax.scatter_add_(1, target.unsqueeze(1), -torch.ones(target.shape[0], 1))
        else:
            softmax.index_put_((torch.arange(target.shape[0]), target), torch.full(target.shape, -1.0), accumulate=True)
        softmax.mul_(gradient / target.shape[0])
        return (ctx.view.view(softmax.shape) if ctx.how == "sub" else softmax), None, None


class Gathers(torch.autograd.Function):
    """Gathers a sharded parameter; backward sums its gradients."""

    @staticmethod
    def forward(ctx, shard):
        c10d = torch.ops._c10d_functional
        return c10d.wait_tensor(c10d.all_gather_into_tensor(shard, WORLD, _group()))

    @staticmethod
    def backward(ctx, gradient):
        c10d = torch.ops._c10d_functional
        return c10d.wait_tensor(c10d.reduce_scatter_tensor(gradient.contiguous(), "sum", WORLD, _group()))


def _group() -> str:
    join_group(WORLD)
    return torch.distributed.group.WORLD.group_name


def _gathered_columns(h: Tensor, shard: Tensor) -> Tensor:
    return torch.tanh(h @ torch.cat(Gathers.apply(shard).chunk(WORLD), 1))


def _gathered_cast(h: Tensor, shard: Tensor) -> Tensor:
    return F.silu(F.linear(h, Gathers.apply(shard.to(torch.float64)).to(h.dtype)))


def _gathered_twice(h: Tensor, shard: Tensor) -> Tensor:
    w = Gathers.apply(shard)
    return torch.sigmoid(h @ w) @ w.t()


def _attention(h: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax((h @ q) @ (h @ k).t() * 0.5, -1) @ (h @ v)


def _gated(h: Tensor, w: Tensor) -> Tensor:
    left, right = (h @ w).chunk(2, -1)
    return torch.cat([F.silu(left) * right, left], -1)


def _rms(h: Tensor, w: Tensor) -> Tensor:
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5) * w


def _batch_norm(h: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    return F.batch_norm(h, mean, variance, w, b, True, 0.1, 1e-5)


def _average(h: Tensor, state: Tensor) -> Tensor:
    with torch.no_grad():
        state.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
    return h + state


def _counted(h: Tensor, state: Tensor) -> Tensor:
    state.add_(1.0)
    return h * state.sum().detach()


def _mask(h: Tensor) -> Tensor:
    mask = torch.zeros(h.shape)
    mask[0].fill_(1.0)
    mask.diagonal().add_(0.5)
    return h * mask + h


def _in_place_residual(h: Tensor, w: Tensor) -> Tensor:
    product = h @ w
    product.add_(h)
    return product.view(h.shape)


def _relu_in_place(h: Tensor, w: Tensor) -> Tensor:
    return torch.relu_(h @ w)


def _slice_write(h: Tensor, w: Tensor) -> Tensor:
    product = torch.tanh(h @ w)
    copy = product.clone()
    copy[:, :2].mul_(2.0)
    return copy + product


def _sized(h: Tensor, w: Tensor) -> Tensor:
    product = (h @ w).sin()
    side = product.detach().clone()
    side.t_()
    return product + side.t()


def _buffer_out(h: Tensor) -> Tensor:
    out = torch.empty(h.shape)
    torch.mul(h.detach(), 0.5, out=out)
    return h.sigmoid() + out


def _sorted(h: Tensor) -> Tensor:
    values, places = torch.sort(h, dim=-1, stable=True)
    best, _ = torch.max(h, 1, keepdim=True)
    return values + best + places.to(h.dtype).detach() * 0.1


def _split(h: Tensor, w: Tensor) -> Tensor:
    first, rest = torch.split(h @ w, [1, WIDTH - 1], -1)
    return torch.cat([rest.cumsum(-1), first], -1)


def _embedded(h: Tensor, w: Tensor) -> Tensor:
    return h + F.embedding(h.detach().argmax(-1), w)


def _save_products(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if op in (aten.mm.default, aten.addmm.default) else CheckpointPolicy.PREFER_RECOMPUTE


def _recompute_all(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_RECOMPUTE


def _selective(policy: Callable) -> Callable[..., Tensor]:
    def function(h: Tensor, w: Tensor) -> Tensor:
        contexts = lambda: create_selective_checkpoint_contexts(policy)  # noqa: E731
        inner = lambda x, y: torch.tanh(F.gelu(x @ y) @ y)  # noqa: E731
        return checkpoint(inner, h, w, use_reentrant=False, context_fn=contexts)

    return function


def _checkpointed(h: Tensor, w: Tensor) -> Tensor:
    return checkpoint(lambda x, y: torch.sigmoid(x @ y).mul(x), h, w, use_reentrant=False)


PLAIN = (
    Block(lambda h, w: F.gelu(h @ w), (SQUARE,)),
    Block(lambda h, w, b: torch.addmm(b, h, w).sigmoid(), (SQUARE, ROW)),
    Block(lambda h, w: h + torch.tanh(h @ w), (SQUARE,)),
    Block(lambda h, w: F.silu(F.linear(h, w)), (SQUARE,)),
    Block(lambda h, w, b: F.layer_norm(h, (WIDTH,), w, b), (ROW, ROW)),
    Block(_rms, (ROW,)),
    Block(_attention, (SQUARE, SQUARE, SQUARE)),
    Block(_gated, (SQUARE,)),
    Block(_sorted),
    Block(_split, (SQUARE,)),
    Block(_embedded, (SQUARE,)),
    Block(lambda h: h.view(-1).view(h.shape) + h.t().t().detach()),
    Block(lambda h: h.sin() + h.sin() * h.to(torch.float64).to(torch.float32)),
)
WRITING = (
    Block(_in_place_residual, (SQUARE,)),
    Block(_relu_in_place, (SQUARE,)),
    Block(_slice_write, (SQUARE,)),
    Block(_mask),
    Block(_sized, (SQUARE,)),
    Block(_buffer_out),
    Block(_batch_norm, (ROW, ROW), (ROW, ROW)),
    Block(_average, (), (ROW,)),
    Block(_counted, (), (ROW,)),
)
DRAWING = (
    Block(lambda h: F.dropout(h, 0.5, True)),
    Block(lambda h: h * torch.rand_like(h)),
    Block(lambda h: h + torch.bernoulli(torch.full_like(h, 0.5))),
)
BACKWARD_WRITING = (
    Block(WritesItsView.apply),
    Block(WritesWhatItSaved.apply),
    Block(FillsPart.apply),
    Block(WritesItsGradient.apply),
    Block(lambda h, w: WritesItsView.apply(h @ w), (SQUARE,)),
)
GATHERING = (
    Block(lambda h, w: h + torch.sin(h @ Gathers.apply(w)), (ROWS,)),
    Block(_gathered_columns, (COLUMNS,)),
    Block(_gathered_cast, (ROWS,)),
    Block(_gathered_twice, (ROWS,)),
)
READING_FIRST = (Block(WritesWhatItHasRead.apply),)
CHECKPOINTED = (Block(_checkpointed, (SQUARE,)),)
TAGGING = (Block(_selective(_save_products), (SQUARE,)), Block(_selective(_recompute_all), (SQUARE,)))

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross entropy": F.cross_entropy,
    "sum": lambda h, target: h.sum(),
    "squares": lambda h, target: (h * h).mean() + h.logsumexp(-1).sum(),
    "fused sub": lambda h, target: FusedCrossEntropy.apply(h, target, "sub"),
    "fused scatter": lambda h, target: FusedCrossEntropy.apply(h, target, "scatter"),
    "fused index_put": lambda h, target: FusedCrossEntropy.apply(h, target, "index_put"),
}
