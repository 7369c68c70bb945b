"""Steps that are calls of higher-order operators with bodies of a few operators."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch._higher_order_ops.map import map_impl
from torch._higher_order_ops.scan import scan_op
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import _create_empty_block_mask

from differential_parts.programs import aten
from differential_parts.tape import Tape, is_float

higher = torch.ops.higher_order


def _branches(a: Tensor) -> object:
    return higher.cond(a.sum() > 0, lambda x: (x.sin() * 2.0,), lambda x: (x.cos().sin(),), (a,))


def _two_branches(a: Tensor) -> object:
    return higher.cond(a.sum() > 1, lambda x: (x + 1.0, x.sum()), lambda x: (x * 2.0, x.sum() * 3.0), (a,))


def _loop(a: Tensor) -> object:
    return higher.while_loop(
        lambda i, x: i.sum() < 3, lambda i, x: (i + 1, x * 2.0 + 1.0), (torch.zeros((), dtype=torch.int64), a), ()
    )


def _mapped(a: Tensor) -> object:
    return map_impl(lambda x: (x.sin() + x,), (a,), ())


def _scanned(a: Tensor) -> object:
    return scan_op(lambda carry, x: (carry + x, carry * x), [a[0].clone()], [a], ())


@functools.cache
def _body(sizes: tuple[int, ...], kind: int) -> GraphModule:
    bodies: list[Callable] = [lambda x: (x.sin() * 2.0,), lambda x: (x.cos(), x + 1.0), lambda x: (torch.rand_like(x) + x,)]
    return make_fx(bodies[kind])(torch.ones(sizes))


def _invoked(kind: int) -> Callable[[Tensor], object]:
    return lambda a: higher.invoke_subgraph(_body(tuple(int(size) for size in a.shape), kind), f"body_{kind}", a)


def _attention(a: Tensor) -> object:
    q = a.unsqueeze(0).unsqueeze(0)
    mask = _create_empty_block_mask(q, q).as_tuple()
    return higher.flex_attention(q, q, q, lambda score, *_: score * 0.5, mask, 1.0, {}, (), ())


CALLS = (
    _branches, _branches, _two_branches, _loop, _mapped, _scanned, _invoked(0), _invoked(0), _invoked(1), _invoked(2),
    lambda a: higher.run_and_save_rng_state(aten.rand_like.default, a)[1], lambda a: higher.strict_mode(lambda x: (x.sin(),), (a,)),
    lambda a: higher.out_dtype(aten.mul.Tensor, torch.float32, a, 2.0), lambda a: higher.print("value {}", 3),
)  # fmt: skip


def step(tape: Tape) -> None:
    """A call, sometimes repeated."""
    place = tape.pick(lambda value: is_float(value) and value.dim() >= 1 and value.is_contiguous())
    if place is None:
        return
    if tape.dice.chance(0.06):
        place = tape.pick(lambda value: is_float(value) and value.dim() == 2)
        if place is not None:
            tape.do(_attention, place)
        return
    tape.do(tape.dice.choice(CALLS), place)
    if tape.dice.chance(0.3):
        tape.again()
