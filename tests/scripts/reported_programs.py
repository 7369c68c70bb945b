"""Small training steps with hazards for which users reported wrong results of PyTorch's graph
passes: random draws, in-place writes, aliases, recomputation and dead code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from differential_parts.training import BackwardNodes
from torch import Tensor
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

WIDTH = 4
SQUARE = (WIDTH, WIDTH)
_library = torch.library.Library("fxopt_reported", "DEF")
_library.define("scale_(Tensor(a!) x, float by) -> Tensor(a!)")
_library.impl("scale_", lambda x, by: x.mul_(by), "CompositeExplicitAutograd")
backward = BackwardNodes()  # backward nodes of the traces of this process


@dataclass(frozen=True)
class Reported:
    """forward(*parameters, *state, x) returns the loss and the other results for the caller. It may
    write its state and x. If all of forward is tagged for recompute, backward must have a copy
    of the operators in `copied`, and none of those in `kept`."""

    name: str
    threads: str
    forward: Callable[..., tuple[Tensor, ...]]
    parameters: int
    copied: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    state: tuple[tuple[int, ...], ...] = ()
    updates: bool = False  # writes parameters in place, then runs a second step
    joint: bool = True  # AOTAutograd supports it

    def inputs(self, *, asking: bool = False) -> list[Tensor]:
        generator = torch.Generator().manual_seed(5)
        sizes = [SQUARE] * self.parameters + [*self.state, SQUARE]
        result = [torch.randn(size, generator=generator) for size in sizes]
        for parameter in result[: self.parameters]:
            parameter.requires_grad_(asking)
        return result

    def step(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The loss, the gradients, and the other results of forward."""
        return self.run(self.forward, inputs)

    def run(self, forward: Callable[..., tuple[Tensor, ...]], inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The step with another function in place of forward, such as a compiled one."""
        result: tuple[Tensor, ...] = ()
        wanted = inputs[: self.parameters]
        for _ in range(2 if self.updates else 1):
            with torch.enable_grad():
                loss, *others = forward(*inputs)
                with backward:
                    gradients = torch.autograd.grad(loss, wanted)
            result += (loss.detach(), *gradients, *(other.detach() for other in others))
            if self.updates:
                for parameter, gradient in zip(wanted, gradients):
                    parameter.detach().sub_(gradient, alpha=0.1)
        return result


def _draws(w: Tensor, v: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    hidden = F.dropout(torch.relu(x @ w), 0.5, training=True)
    torch.rand(2)  # unused, but later draws depend on it
    return ((hidden * torch.rand_like(hidden)) @ v).sin().sum(), hidden


def _reads_what_it_writes_later(w: Tensor, state: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    scale, shifted = state.exp(), x.cos()
    out = (x.tanh() @ w).sin() * scale * shifted
    state.mul_(0.9)
    x.add_(1.0)
    return out.sum(), out


def _counts(w: Tensor, state: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    first = x @ w * state.exp()
    state.add_(1.0)
    return (first.sin() * state.exp()).sum(),


class _WritesItsOutput(torch.autograd.Function):
    """Saves its output and computes the gradient in the same memory."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.out = x.sigmoid()
        return ctx.out.view(x.shape)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return ctx.out.mul_(gradient)


def _writes_output_in_backward(w: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    out = _WritesItsOutput.apply((x @ w).sin())
    return out.sum() * 3.0, out


def _recompute_all(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
    return CheckpointPolicy.PREFER_RECOMPUTE


def _contexts() -> tuple[object, object]:
    return create_selective_checkpoint_contexts(_recompute_all, allow_cache_entry_mutation=True)


def _in_place_in_a_region(w: Tensor, v: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    def layer(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        hidden = (x @ w.sin()).mul_(2.0)
        hidden.relu_()
        return (hidden @ v).sin()

    return checkpoint(layer, x, w, v, use_reentrant=False, context_fn=_contexts).sum(),


def _filled_factory(w: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    mask = torch.zeros(SQUARE)
    mask[1:].fill_(1.0)
    mask.diagonal().add_(0.5)
    ramp = torch.full((WIDTH,), 0.25)
    ramp[2] = 3.0
    return ((x @ w).sin() * mask * ramp).sum(), mask


def _copies_back(w: Tensor, state: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    kept = state.clone()  # a copy for the caller, unaffected by the write
    moved = state * 0.9 + x.detach().mean(0)
    state.copy_(moved)
    return ((x @ w).sin() * moved.exp()).sum(), moved, kept, state.view(2, 2), state


def _shifts(w: Tensor, state: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    before = state[:-1] * 2.0
    state[1:].copy_(state[:-1].clone())
    state[0].add_(state[2])
    state[:, 1:].sub_(state[:, :-1] * 0.5)
    return ((x @ w).sin() @ state[:2].exp().t() @ before[:2]).sum(), before


def _expands(w: Tensor, state: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    rows = state.expand(WIDTH, WIDTH)
    own = rows.clone()
    own[0].mul_(3.0)
    state.add_(1.0)  # visible in every row of `rows`
    return ((x @ w).sin() * own * rows.exp()).sum(), own


def _repeats_indices(w: Tensor, state: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    places = torch.tensor([0, 2, 2, 0])
    read = state[places]
    state.index_put_((places,), x, accumulate=True)
    state.index_add_(0, places, read)
    return ((x @ w).sin()[places] * state[places].cos() * read).sum(), read


def _aliases_and_writes(w: Tensor, state: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    torch.ops.fxopt_reported.scale_(state, 2.0)  # the result is unused
    again = torch.ops.fxopt_reported.scale_(state, 2.0)
    return ((x @ w).sin() * again.exp()).sum(),


def _normalizes(w: Tensor, mean: Tensor, variance: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    variance.abs_()
    out = F.batch_norm((x @ w).sin(), mean, variance, training=True, momentum=0.1)
    return (out.sigmoid() * mean.exp()).sum(),


def _shares_blocks(w: Tensor, v: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    return _passes_blocks(w, v, w, v, x)


def _passes_blocks(*inputs: Tensor) -> tuple[Tensor, ...]:
    *weights, x = inputs
    for weight in weights:
        x = x + checkpoint(lambda h, y: torch.tanh(F.gelu(h @ y) @ y), x, weight, use_reentrant=False, context_fn=_contexts)
    return x.sin().sum(),


def _trains(w: Tensor, v: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    return (torch.tanh((x @ w.sin()).sigmoid()) @ v).square().mean(),


ROW = (WIDTH,)
READ_BEFORE = ("exp", "tanh", "cos", "mul_", "add_")
SHARED_BLOCKS = Reported("shared blocks", "pytorch 193193", _shares_blocks, 2, ("mm", "gelu"))
OWN_BLOCKS = Reported("blocks of their own", "", _passes_blocks, 4, ("mm", "gelu"))
PROGRAMS = (
    Reported("random draws", "pytorch 190758, 190717", _draws, 2, ("relu", "mm"), ("bernoulli_", "rand", "rand_like")),
    Reported("reads before writes", "pytorch 197039", _reads_what_it_writes_later, 1, ("mm",), READ_BEFORE, (SQUARE,)),
    Reported("counter between reads", "pytorch 81244, functorch 565", _counts, 1, ("mm",), ("add_",), (SQUARE,)),
    Reported("output written in backward", "pytorch 174124", _writes_output_in_backward, 1, ("mm",), ("sigmoid",), joint=False),
    Reported("in place in a region", "pytorch 113737", _in_place_in_a_region, 2, ("mm",), ("mul_", "relu_")),
    Reported("factory with writes", "pytorch 171966, 170160", _filled_factory, 1, ("mm",), ("zeros", "full", "fill_", "add_")),
    Reported("copied back", "pytorch 195451", _copies_back, 1, ("mm", "exp"), ("copy_",), (ROW,)),
    Reported("other positions", "pytorch 198270, 138908", _shifts, 1, ("mm",), ("copy_", "add_", "sub_"), (SQUARE,)),
    Reported("expanded tensor", "pytorch 198033", _expands, 1, ("mm",), ("mul_", "add_"), (ROW,)),
    Reported("repeated indices", "pytorch 152425", _repeats_indices, 1, ("mm",), ("index_put_", "index_add_"), (SQUARE,)),
    Reported("aliases and writes", "pytorch 166009", _aliases_and_writes, 1, ("mm",), ("scale_",), (SQUARE,), joint=False),
    Reported("running statistics", "pytorch 81244", _normalizes, 1, ("mm",), ("abs_", "native_batch_norm"), (ROW, ROW)),
    SHARED_BLOCKS,
    Reported("updates between steps", "functorch 565", _trains, 2, ("sin", "mm"), ("sub_",), updates=True, joint=False),
)
