"""Operators of a library that fxopt has never heard of: it knows what their schemas say."""

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


ops = torch.ops.differential
