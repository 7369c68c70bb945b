"""Executes one call of an operator and finds its sharing, writes, moves, draws and reads. The
evidence is addresses, bytes, version counters and the generator's state. No schema is used."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

MAX_BYTES = 1 << 18  # limit of a tensor's storage; larger calls show nothing more
SEED = 20


@dataclass(frozen=True, order=True)
class Facts:
    """The effects of one call. Arguments are numbered by the tensors among them, depth first;
    outputs likewise."""

    # (output, argument): on one storage, the argument's before or after the call
    shares: tuple[tuple[int, int], ...] = ()
    same: tuple[tuple[int, int], ...] = ()  # (output, argument): the argument object itself
    # (output, later output): on one storage that is no argument's
    joined: tuple[tuple[int, int], ...] = ()
    writes: tuple[int, ...] = ()  # the bytes of its storage changed, or their number
    bumps: tuple[int, ...] = ()  # only its version changed
    resizes: tuple[int, ...] = ()  # sizes, strides, offset or bits changed, its storage did not
    moves: tuple[int, ...] = ()  # it is on another storage
    reads: tuple[int, ...] = ()  # other data there gave other results
    draws: bool = False

    def __str__(self) -> str:
        parts = []
        for name in ("shares", "same", "joined"):
            if pairs := getattr(self, name):
                parts.append(f"{name}=" + ",".join(f"{a}:{b}" for a, b in pairs))
        for name in ("writes", "bumps", "resizes", "moves", "reads"):
            if numbers := getattr(self, name):
                parts.append(f"{name}=" + ",".join(map(str, numbers)))
        return " ".join(parts + ["draws"] * self.draws)


@dataclass
class Call:
    """A target and its arguments; it owns its tensors."""

    target: Callable[..., Any]
    leaves: list[Any]
    spec: pytree.TreeSpec

    @staticmethod
    def of(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        leaves, spec = pytree.tree_flatten((list(args), dict(kwargs)))
        return Call(target, [copy_of(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec)

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        return pytree.tree_unflatten(self.leaves, self.spec)

    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    def with_tensors(self, tensors: list[torch.Tensor]) -> Call:
        rest = iter(tensors)
        return Call(self.target, [next(rest) if isinstance(x, torch.Tensor) else x for x in self.leaves], self.spec)


@dataclass
class Outcome:
    """One execution."""

    before: list[torch.Tensor]  # the arguments before the call
    tensors: list[torch.Tensor]  # the arguments after the call
    versions: list[int]  # versions of `before`
    # addresses of the storages of `before`, which stay alive so that no other storage takes them
    addresses: list[int]
    result: Any
    outputs: list[Any]  # the leaves of the result
    draws: bool
    kept: list[Any]

    def moved(self, i: int) -> bool:
        return address(self.tensors[i]) != self.addresses[i]

    def reshaped(self, i: int) -> bool:
        return shape_of(self.tensors[i]) != shape_of(self.before[i])

    def rewritten(self, i: int) -> bool:
        return not self.moved(i) and bytes_of(self.tensors[i]) != bytes_of(self.before[i])


def copy_of(tensor: torch.Tensor, storages: dict[int, torch.UntypedStorage] | None = None) -> torch.Tensor:
    """A copy with the same strides and offset on its own storage. `storages`: the copied storages by
    address(), for tensors that share one."""
    plain = tensor.detach()
    is_conj, is_neg = plain.is_conj(), plain.is_neg()
    plain = torch._conj(plain) if is_conj else plain
    plain = torch._neg_view(plain) if is_neg else plain
    made = torch.empty(0, dtype=plain.dtype)
    storages = {} if storages is None else storages
    if address(plain) not in storages:
        storages[address(plain)] = plain.untyped_storage().clone()
    made.set_(storages[address(plain)], plain.storage_offset(), plain.size(), plain.stride())
    made = torch._neg_view(made) if is_neg else made
    return torch._conj(made) if is_conj else made


def is_ordinary(value: torch.Tensor) -> bool:
    """A dense tensor of the CPU that can be copied byte by byte."""
    return (
        type(value) is torch.Tensor
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
        and not value._is_zerotensor()
        and value.untyped_storage().nbytes() <= MAX_BYTES
    )


def address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def shape_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset(), tensor.dtype, tensor.is_conj(), tensor.is_neg()


def bytes_of(tensor: torch.Tensor) -> bytes:
    """All bytes of its storage."""
    storage = tensor.untyped_storage()
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""


def content_of(tensor: torch.Tensor) -> bytes:
    """Its elements in order, whatever the strides; empty if its storage was cut down."""
    reach = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    if tensor.numel() and (tensor.storage_offset() + reach + 1) * tensor.itemsize > tensor.untyped_storage().nbytes():
        return b""
    return bytes_of(tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format))


def execute(call: Call) -> Outcome:
    """Runs a call on copies of its tensors, each on its own storage. Passes on exceptions of the
    call."""
    tensors = [copy_of(tensor) for tensor in call.tensors()]
    storages = [tensor.untyped_storage() for tensor in tensors]
    versions = [tensor._version for tensor in tensors]
    args, kwargs = call.with_tensors(tensors).arguments()
    torch.manual_seed(SEED)
    state = torch.get_rng_state()
    result = call.target(*args, **kwargs)
    _finish(call.target, result)
    draws = not torch.equal(state, torch.get_rng_state())
    return Outcome(call.tensors(), tensors, versions, [s._cdata for s in storages], result, pytree.tree_leaves(result),
                   draws, storages)


def _finish(target: Callable[..., Any], result: Any) -> None:
    """Waits for a collective."""
    if getattr(target, "namespace", "") == "_c10d_functional":
        for value in pytree.tree_leaves(result):
            torch.ops._c10d_functional.wait_tensor(value)


def results_of(outcome: Outcome, written: set[int]) -> list[Any]:
    """The results that a reader sees. An output that shares an argument's storage counts by shape
    and argument, other outputs by shape and content. An argument's content counts only if it is
    written."""
    owned = {at: i for i, at in enumerate(outcome.addresses)} | {address(t): i for i, t in enumerate(outcome.tensors)}
    seen: list[Any] = []
    for value in outcome.outputs:
        if not isinstance(value, torch.Tensor):
            seen.append(repr(value))
        elif not is_ordinary(value):
            seen.append(None)
        else:
            is_argument = address(value) in owned
            seen.append((shape_of(value), owned.get(address(value)), None if is_argument else content_of(value)))
    for i, tensor in enumerate(outcome.tensors):
        seen.append((shape_of(tensor), outcome.moved(i), content_of(tensor) if i in written else None))
    return seen


def other_data(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The same tensor with other data: moved by one, reversed, partly zeros, other numbers; valid
    data is likely to stay valid."""
    for change in (_roll, _flip, _clear, _renew):
        made = copy_of(tensor)
        base = torch.empty(0, dtype=made.dtype).set_(made.untyped_storage())
        if base.numel() == 0:
            return
        change(base)
        if content_of(made) != content_of(tensor):
            yield made


def _roll(base: torch.Tensor) -> None:
    base.copy_(base.roll(1))


def _flip(base: torch.Tensor) -> None:
    base.copy_(base.flip(0))


def _clear(base: torch.Tensor) -> None:
    if base.dtype == torch.bool:
        base.logical_not_()
    else:
        base[: (base.numel() + 1) // 2] = 0


def _renew(base: torch.Tensor) -> None:
    if base.is_floating_point() or base.is_complex():
        base.copy_(torch.rand(base.shape, generator=torch.Generator().manual_seed(SEED)))
    else:
        base.fill_(1)


def reads_of(call: Call, first: Outcome) -> tuple[int, ...]:
    """The arguments whose data the results depend on. A failure caused by other data counts as a
    result."""
    again = execute(call)
    written = {i for i in range(len(first.tensors)) if first.rewritten(i)}
    expected = results_of(first, written)
    # False: uninitialized
    steady = [a == b for a, b in zip(expected, results_of(again, written), strict=True)]
    tensors, reads = call.tensors(), []
    for number, tensor in enumerate(tensors):
        for other in other_data(tensor):
            try:
                seen = results_of(execute(call.with_tensors([*tensors[:number], other, *tensors[number + 1 :]])), written)
            except Exception:
                seen = []
            if len(seen) != len(expected) or any(a != b for a, b, ok in zip(expected, seen, steady, strict=True) if ok):
                reads.append(number)
                break
    return tuple(reads)


def observe(call: Call) -> tuple[Facts, Outcome]:
    """Executes a call as often as needed to find its facts. Passes on exceptions of the call."""
    first = execute(call)
    numbers = range(len(first.tensors))
    outputs = [(i, x, address(x)) for i, x in enumerate(first.outputs) if isinstance(x, torch.Tensor) and is_ordinary(x)]
    places = [{first.addresses[i], address(first.tensors[i])} for i in numbers]
    resizes = tuple(i for i in numbers if not first.moved(i) and first.reshaped(i))
    writes = tuple(i for i in numbers if first.rewritten(i))
    moves = tuple(i for i in numbers if first.moved(i))
    bumped = (i for i in numbers if first.tensors[i]._version != first.versions[i])
    owned = set().union(*places)
    facts = Facts(
        tuple((o, i) for o, _, at in outputs for i in numbers if at in places[i]),
        tuple((o, i) for o, value, _ in outputs for i in numbers if value is first.tensors[i]),
        tuple((a, b) for a, _, at in outputs for b, _, bt in outputs if a < b and at == bt and at not in owned),
        writes,
        tuple(i for i in bumped if i not in writes + resizes + moves),
        resizes,
        moves,
        reads_of(call, first),
        first.draws,
    )
    return facts, first
