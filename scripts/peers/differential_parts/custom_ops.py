"""Operators of a library that fxopt does not know: it sees only their schemas."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("differential::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x * 2.0


@torch.library.custom_op("differential::add_into", mutates_args=("x",))
def add_into(x: Tensor, amount: float) -> None:
    x.add_(amount)


@torch.library.custom_op("differential::swap_into", mutates_args=("x", "y"))
def swap_into(x: Tensor, y: Tensor) -> Tensor:
    held = x.clone()
    x.copy_(y)
    y.copy_(held)
    return held * 2.0


@twice.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@add_into.register_fake
def _(x: Tensor, amount: float) -> None:
    return None


@swap_into.register_fake
def _(x: Tensor, y: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


LIBRARY = torch.library.Library("differential", "FRAGMENT")
LIBRARY.define("shift_(Tensor(a!) x, float amount) -> Tensor(a!)")
LIBRARY.define("flat(Tensor(a) x) -> Tensor(a)")
LIBRARY.impl("shift_", lambda x, amount: x.add_(amount), "CompositeExplicitAutograd")
LIBRARY.impl("flat", lambda x: x.view(-1), "CompositeExplicitAutograd")

ops = torch.ops.differential
