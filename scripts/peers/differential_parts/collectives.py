"""Simulates collectives, sends and receives of a process group in which only this rank exists.

Results differ from their inputs and are there only after a wait, so a lost wait, or a read before
it, changes values.

Messages are kept by group and other rank, in their order, sends and receives together: NCCL matches
them by order and knows no tags. The buffer of a send is read when the send is issued and again
after its wait; in between it must not change. The n-th message from a rank has its own content.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

POISON = 77.0
CHANGED = "changed before its wait"


def _others(value: Tensor, rank: int) -> Tensor:
    """The value on another rank, given this rank's `value`."""
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


@dataclass
class Message:
    """The other rank's view of a send or a receive."""

    kind: str
    tag: int
    dtype: torch.dtype
    elements: int
    is_contiguous: bool
    data: bytes = b""  # sent
    data_at_end: bytes = b""  # after its wait, or at the end of the program
    is_waited: bool = False

    def __str__(self) -> str:
        words = [f"{self.kind} of {self.elements} {str(self.dtype).removeprefix('torch.')}, tag {self.tag}"]
        words += [f"content {zlib.crc32(self.data):08x}"] if self.kind == "isend" else []
        words += [CHANGED] if self.data != self.data_at_end else []
        words += [] if self.is_contiguous else ["not contiguous"]
        words += [] if self.is_waited else ["never waited for"]
        return ", ".join(words)


def _bytes(value: Tensor) -> bytes:
    flat = value.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def _received(place: Tensor, name: str) -> Tensor:
    """The content of the message of that name, shaped like `place`."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return torch.randn(place.shape, generator=generator).to(place.dtype)


def _in_order(func: torch._ops.OpOverload, args: Sequence[object], kwargs: dict[str, object] | None) -> list:
    """The arguments in the order of the schema."""
    return [*args, *((kwargs or {})[argument.name] for argument in func._schema.arguments[len(args) :])]


class SimulatedRanks(TorchDispatchMode):
    """Executes the functional collectives that `_RESULTS` names, sends and receives; other calls
    run unchanged."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []  # launched calls in order: the other ranks wait for the same
        self.messages: dict[str, list[Message]] = {}  # by group and rank
        self._pending: dict[
            int, list[tuple[Tensor, Tensor, Message | None]]
        ] = {}  # by storage: the place, and the value that a wait puts there

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if getattr(func, "namespace", "") != "_c10d_functional":
            return func(*args, **(kwargs or {}))
        name = func._schema.name.partition("::")[2]
        if name == "wait_tensor":
            return self._wait(args[0])
        if name == "wait_tensors":
            return [self._wait(value) for value in args[0]]
        if name in ("isend", "irecv"):
            value, peer, tag, group = _in_order(func, args, kwargs)
            return self._exchange([name], [peer], [tag], [value], group)[0]
        if name == "batch_p2p_ops":
            return self._exchange(*_in_order(func, args, kwargs))
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

    def finish(self) -> dict[str, list[str]]:
        """The messages in words; sends without a wait are read once more first."""
        for pending in self._pending.values():
            for _, value, message in pending:
                if message is not None and message.kind == "isend":
                    message.data_at_end = _bytes(value)
        return {pair: [str(message) for message in messages] for pair, messages in self.messages.items()}

    def _exchange(
        self, names: Sequence[str], peers: Sequence[int], tags: Sequence[int], tensors: Sequence[Tensor], group: object
    ) -> list[Tensor]:
        """Issues sends and receives of one call; reads every buffer before it fills any."""
        self.calls.append(f"{' '.join(names)} {[value.numel() for value in tensors]} {list(peers)} {list(tags)} {group}")
        results = []
        for name, peer, tag, value in zip(names, peers, tags, tensors):
            earlier = self.messages.setdefault(f"group {group} rank {peer}", [])
            message = Message(name, tag, value.dtype, value.numel(), value.is_contiguous())
            if name == "isend":
                message.data = message.data_at_end = _bytes(value)
                results.append(torch.empty(0, dtype=value.dtype))
            else:
                results.append(value)
                value = _received(value, f"{group} {peer} {tag} {sum(other.kind == name for other in earlier)}")
            self._pend(results[-1], value, message)
            earlier.append(message)
        for name, value in zip(names, tensors):
            if name == "irecv":
                _poison(value)
        return results

    def _begin(self, out: Tensor, result: Tensor) -> Tensor:
        """Puts `result` into `out` at the wait; until then `out` holds poison."""
        self._pend(out, result, None)
        return _poison(out)

    def _pend(self, out: Tensor, value: Tensor, message: Message | None) -> None:
        self._pending.setdefault(out.untyped_storage()._cdata, []).append((out, value, message))

    def _wait(self, value: Tensor) -> Tensor:
        for out, result, message in self._pending.pop(value.untyped_storage()._cdata, ()):
            if message is not None:
                message.is_waited = True
            if message is not None and message.kind == "isend":
                message.data_at_end = _bytes(result)
            else:
                out.copy_(result)
        return value


def _poison(out: Tensor) -> Tensor:
    return out.fill_(POISON if out.dtype != torch.bool else True)


def join_group(size: int) -> None:
    """Makes this process rank 0 of a fake group, for tracing and for the group names of
    collectives."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())
