"""Collectives of a process group of which only this rank exists, with results that differ from their inputs and that
are there only once they were waited for: a wait that is lost, or a read before it, changes values."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

POISON = 77.0


def _others(value: Tensor, rank: int) -> Tensor:
    """What another rank holds where this one holds `value`."""
    return value * (rank + 1) + rank if value.dtype != torch.bool else value


def _sum(value: Tensor, world: int) -> Tensor:
    return sum((_others(value, rank) for rank in range(1, world)), start=value.clone())


def _all_reduce(value: Tensor, op: str, group: str) -> Tensor:
    return _sum(value, _size(group))


def _all_gather(value: Tensor, size: int, group: str) -> Tensor:
    return torch.cat([_others(value, rank) for rank in range(size)])


def _reduce_scatter(value: Tensor, op: str, size: int, group: str) -> Tensor:
    return _sum(value, size).chunk(size)[0].clone()


def _all_to_all(value: Tensor, outputs: list[int], inputs: list[int], group: str) -> Tensor:
    return _others(value, 1)[: sum(outputs)].clone() if sum(outputs) <= len(value) else value.clone()


def _broadcast(value: Tensor, source: int, group: str) -> Tensor:
    return _others(value, source)


def _size(group: object) -> int:
    return torch.distributed.distributed_c10d._resolve_process_group(group).size()


_RESULTS = {
    "all_reduce": _all_reduce,
    "all_reduce_": _all_reduce,
    "all_gather_into_tensor": _all_gather,
    "reduce_scatter_tensor": _reduce_scatter,
    "all_to_all_single": _all_to_all,
    "broadcast": _broadcast,
    "broadcast_": _broadcast,
}


class SimulatedRanks(TorchDispatchMode):
    """Carries out the functional collectives that `_RESULTS` names; other calls are none of its business."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []  # what was launched, in order: the other ranks wait for the same
        self._pending: dict[int, tuple[Tensor, Tensor]] = {}  # by storage: where, and what a wait puts there

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if getattr(func, "namespace", "") != "_c10d_functional":
            return func(*args, **(kwargs or {}))
        name = func._schema.name.partition("::")[2]
        if name == "wait_tensor":
            return self._wait(args[0])
        if name.endswith("_coalesced") and name.removesuffix("_coalesced") in _RESULTS:
            self.calls.append(f"{name} {[tuple(value.shape) for value in args[0]]} {args[1:]}")
            of_one = _RESULTS[name.removesuffix("_coalesced")]
            results = [of_one(value, *args[1:], **(kwargs or {})) for value in args[0]]
            return [self._begin(torch.empty_like(result), result) for result in results]
        told = dict(kwargs or {})
        given = told.pop("out", None) if name.endswith("_out") else args[0] if name.endswith("_") else None
        known = name.removesuffix("_out")
        if known not in _RESULTS:
            return func(*args, **(kwargs or {}))
        self.calls.append(f"{known} {tuple(args[0].shape)} {args[1:]}")
        result = _RESULTS[known](*args, **told)
        return self._begin(torch.empty_like(result) if given is None else given, result)

    def _begin(self, out: Tensor, result: Tensor) -> Tensor:
        """`result` is in `out` after a wait, and until then what nobody should read."""
        self._pending[out.untyped_storage().data_ptr()] = (out, result)
        return out.fill_(POISON if out.dtype != torch.bool else True)

    def _wait(self, value: Tensor) -> Tensor:
        pending = self._pending.pop(value.untyped_storage().data_ptr(), None)
        if pending is not None:
            pending[0].copy_(pending[1])
        return value


def join_group(size: int) -> None:
    """Makes this process rank 0 of a group of fakes, for tracing and for the names that collectives carry."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())
