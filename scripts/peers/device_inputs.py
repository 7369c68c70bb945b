"""Real arguments for a graph on a device, from the values of its placeholders."""

from __future__ import annotations

import torch
from bound_values import BoundGraph
from torch import Tensor
from torch.fx import Node
from torch.utils._pytree import tree_map

_TOKENS = 64  # a vocabulary size that every model of testdata has
_SCALE = 0.02  # scale of random floats, so small that products of a deep model stay finite

# Ops that read an index: its position among the arguments, and the size that bounds it.
_INDEXED = {
    "aten::embedding": (1, lambda args: args[0].shape[0]),
    "aten::embedding_dense_backward": (1, lambda args: args[2]),
    "aten::nll_loss_forward": (1, lambda args: args[0].shape[-1]),
    "aten::nll_loss_backward": (2, lambda args: args[1].shape[-1]),
    "aten::gather": (2, lambda args: args[0].shape[args[1]]),
    "aten::index_select": (2, lambda args: args[0].shape[args[1]]),
    "aten::scatter": (2, lambda args: args[0].shape[args[1]]),
    "aten::scatter_add": (2, lambda args: args[0].shape[args[1]]),
}
_SAME_NUMBERS = frozenset(
    "aten::" + name
    for name in "view reshape _unsafe_view unsqueeze squeeze expand slice select split permute transpose t clone _to_copy alias"
    " detach contiguous".split()
)


def _schema_name(node: Node) -> str:
    return node.target._schema.name if isinstance(node.target, torch._ops.OpOverload) else ""


def index_limit(node: Node, bound: BoundGraph) -> int:
    """All numbers below this are valid indices for an integer input, as far as its uses in the
    graph show; 1 if no use shows it, which leaves only zero."""
    limits: list[int] = []
    todo, seen = [node], {node}
    while todo:
        reached = todo.pop()
        for user in reached.users:
            name = _schema_name(user)
            place, limit = _INDEXED.get(name, (None, None))
            if place is not None and len(user.args) > place and user.args[place] is reached:
                values = [arg.meta.get("val") if isinstance(arg, Node) else arg for arg in user.args]
                limits.append(int(bound.number(limit(values))))
            elif name in _SAME_NUMBERS and user not in seen:
                seen.add(user)
                todo.append(user)
    return max(1, min(limits, default=1))


def make_inputs(bound: BoundGraph, seed: int = 0) -> list[object]:
    """Arguments for the graph: tensors on their own devices that share storages as the placeholders
    do; floats are small and random, integers valid indices, bools false. Nothing else stays
    allocated."""
    storages: dict[int, torch.UntypedStorage] = {}
    torch.manual_seed(seed)
    made = []
    for node in bound.nodes:
        if node.op == "placeholder":
            limit = index_limit(node, bound)
            made.append(tree_map(lambda leaf, limit=limit: _real(leaf, limit, storages), bound.given(node)))
    return made


def enliven(values: list[object], seed: int = 0) -> list[object]:
    """Replaces, in place, inputs that are zero throughout, whose results would not depend on
    anything before them: by tokens of a small vocabulary, phases, or counts of one. They may be
    invalid inputs for some graphs."""
    generator = torch.Generator().manual_seed(seed)
    for value in values:
        if not isinstance(value, Tensor) or value.any():
            continue
        if value.is_complex():
            angles = torch.rand(value.shape, generator=generator) * 6
            value.copy_(torch.polar(torch.ones_like(angles), angles))
        elif value.dtype == torch.int64 and value.numel() > 1:
            value.random_(0, _TOKENS, generator=generator)
        elif value.dtype != torch.bool and (value.numel() == 1 or (value.dtype == torch.int32 and value.dim() == 3)):
            value.fill_(1)  # an int32 count: how many blocks flex_attention looks at
    return values


def is_telling(value: object) -> bool:
    """Whether all numbers are finite and some are not zero."""
    return isinstance(value, Tensor) and bool(value.any()) and bool(value.isfinite().all())


def _real(value: object, limit: int, storages: dict[int, torch.UntypedStorage]) -> object:
    if not isinstance(value, Tensor):
        return value
    key, dtype = value.untyped_storage()._cdata, value.dtype
    if key not in storages:
        count = value.untyped_storage().nbytes()
        storages[key] = torch.empty(count, dtype=torch.uint8, device=value.device).untyped_storage()
        _fill(torch.empty(0, dtype=dtype, device=value.device).set_(storages[key]), limit)
    plain = torch.empty(0, dtype=dtype, device=value.device)
    return plain.set_(storages[key], value.storage_offset(), value.shape, value.stride())


def _fill(flat: Tensor, limit: int) -> None:
    if flat.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        flat.normal_(0, _SCALE)
    elif limit > 1 and not flat.dtype.is_floating_point and flat.dtype != torch.bool:
        flat.random_(0, limit)
    else:
        flat.untyped_storage().fill_(0)
