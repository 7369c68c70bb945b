"""The room that kernels leave in the storages of their results: they allocate more and shrink the
tensor. Fake kernels do not know of it. Measured by layouts.py, and repeated here independently of
fxopt's table, so that the table is compared with something."""

from __future__ import annotations

import math

import torch
from torch.utils._pytree import tree_leaves

_aten = torch.ops.aten
_LOSSES = {
    _aten.mse_loss.default: 2,
    _aten.smooth_l1_loss.default: 2,
    _aten.soft_margin_loss.default: 2,
    _aten.binary_cross_entropy.default: 3,
}
_RUNS = (_aten.unique_consecutive.default, _aten.unique_dim.default, _aten.unique_dim_consecutive.default)
_BAGS = (_aten._embedding_bag.default, _aten._embedding_bag_forward_only.default)
LEAVES_ROOM = (*_LOSSES, _aten.col2im.default, _aten.im2col.default, *_RUNS, *_BAGS)


def _argument(name: str, place: int, args: tuple, kwargs: dict, default: object) -> object:
    return args[place] if len(args) > place else kwargs.get(name, default)


def left_room(target: object, args: tuple, kwargs: dict, result: object) -> list[int]:
    """Bytes of room in the storage of each tensor of the result, 0 if its own sizes determine
    them."""
    leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    room = [0] * len(leaves)
    if target in _LOSSES and _argument("reduction", _LOSSES[target], args, kwargs, 1) != 0:
        room[0] = math.prod(torch.broadcast_shapes(args[0].shape, args[1].shape)) * leaves[0].element_size()
    elif target in (_aten.col2im.default, _aten.im2col.default):
        room[0] = args[0].numel() * leaves[0].element_size()
    elif target in _RUNS:
        room[0] = args[0].numel() * leaves[0].element_size()
        dim = args[1] if target is not _aten.unique_consecutive.default else _argument("dim", 3, args, kwargs, None)
        if leaves[2].numel() > 0:
            room[2] = (args[0].numel() if dim is None else args[0].shape[dim]) * leaves[2].element_size()
    elif target in _BAGS:
        room[1] = (leaves[1].numel() + 1) * leaves[1].element_size() if leaves[1].numel() > 0 else 0
        room[2] = args[2].numel() * leaves[2].element_size()
    return room
