"""Records this process's CUDA caching allocator: peaks, and every allocation and free in order.

FakeMeter replaces it if there is no GPU: it sees the storages that operators make on fake tensors.
"""

from __future__ import annotations

import gc
import pathlib
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from room import LEAVES_ROOM
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

PEAKS = ("requested", "allocated", "active", "reserved")


@dataclass(frozen=True)
class Event:
    is_alloc: bool
    address: int
    bytes: int  # as requested


class CudaMeter:
    """The allocator of one CUDA device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __enter__(self) -> CudaMeter:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def reset(self) -> None:
        """Starts the peaks again from here."""
        torch.cuda.synchronize(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)

    def empty_cache(self) -> None:
        """Releases memory that no tensor holds, including what cuBLAS keeps for its handles."""
        gc.collect()
        torch.cuda.synchronize(self.device)
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()

    def peaks(self) -> dict[str, int]:
        torch.cuda.synchronize(self.device)
        stats = torch.cuda.memory_stats(self.device)
        return {name: int(stats.get(f"{name}_bytes.all.peak", 0)) for name in PEAKS}

    def is_expandable(self) -> bool:
        """Whether segments can grow, as the allocator reports."""
        return bool(torch.cuda.memory._snapshot()["allocator_settings"]["expandable_segments"])

    def record(self) -> None:
        """Starts recording events."""
        self.stop()
        torch.cuda.memory._record_memory_history(enabled="all", context=None)
        self._allocs_before, self._frees_before = self._counted()

    def stop(self) -> None:
        torch.cuda.memory._record_memory_history(enabled=None)

    def dump(self, path: pathlib.Path) -> None:
        """Writes PyTorch's memory snapshot of the time since record(), and ends recording."""
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.cuda.memory._dump_snapshot(str(path))
        self.stop()

    def _counted(self) -> tuple[int, int]:
        counts = torch.cuda.memory_stats_as_nested_dict(self.device)["allocation"]["all"]
        return int(counts["allocated"]), int(counts["freed"])

    def counts(self) -> tuple[int, int]:
        """The number of allocations and frees since record()."""
        allocs, frees = self._counted()
        return allocs - self._allocs_before, frees - self._frees_before

    def events(self) -> list[Event]:
        """The allocations and frees since record(), in order."""
        return read_trace(torch.cuda.memory._snapshot()["device_traces"][self.device.index or 0])


def read_trace(trace: Sequence[dict]) -> list[Event]:
    """The events of one device of a memory snapshot. A free counts where it is requested, as in
    statistics."""
    kinds = {"alloc": True, "free_requested": False}
    return [Event(kinds[entry["action"]], int(entry["addr"]), int(entry["size"])) for entry in trace if entry["action"] in kinds]


def executed_bytes(func: object, args: tuple, kwargs: dict) -> list[int]:
    """Bytes of the storages of the call's results when it is executed over zeros on the CPU."""
    with unset_fake_temporarily(), no_dispatch():
        real = tree_map_only(torch.Tensor, lambda x: torch.zeros(x.shape, dtype=x.dtype), (args, kwargs))
        leaves = tree_leaves(func(*real[0], **real[1]))
    return [leaf.untyped_storage().nbytes() for leaf in leaves]


class FakeMeter(TorchDispatchMode):
    """Replaces CudaMeter over fake tensors. A storage is allocated when an operator first returns
    it, and freed when its last holder releases it. Knows requested bytes only."""

    supports_higher_order_operators = True

    def __init__(self, device: torch.device, workspaces: dict[object, int] | None = None) -> None:
        """workspaces: bytes that operators take besides their results and release at once."""
        super().__init__()
        self.device = device
        self._workspaces = workspaces or {}
        self._held: dict[int, weakref.ref] = {}
        self._events: list[Event] = []
        self._allocs = 0
        self._current = self._peak = 0
        self._next = 1 << 40  # an address without a storage

    def __torch_dispatch__(self, func: object, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        if func is torch.ops._c10d_functional.wait_tensor.default:
            return args[0]  # its fake kernel returns a new tensor
        result = func(*args, **(kwargs or {}))
        if (size := self._workspaces.get(func)) is not None:
            self._next += size
            self._add(Event(True, self._next, size))
            self._add(Event(False, self._next, size))
        if func in LEAVES_ROOM:  # room that fake kernels do not know of
            for leaf, size in zip(tree_leaves(result), executed_bytes(func, args, kwargs or {})):
                self._hold(leaf, size)
        self.hold_all(result)
        return result

    def hold_all(self, value: object) -> None:
        """Records the storages behind a value, except known ones."""
        for leaf in tree_leaves(value):
            if isinstance(leaf, torch.Tensor):
                self._hold(leaf)

    def _hold(self, tensor: torch.Tensor, executed: int = 0) -> None:
        storage = tensor.untyped_storage()
        address, size = storage._cdata, max(storage.nbytes(), executed)
        if tensor.device != self.device or size == 0 or address in self._held:
            return

        def free(_: object) -> None:
            del self._held[address]
            self._add(Event(False, address, size))

        self._held[address] = weakref.ref(storage, free)
        self._add(Event(True, address, size))

    def _add(self, event: Event) -> None:
        self._events.append(event)
        self._allocs += event.is_alloc
        self._current += event.bytes if event.is_alloc else -event.bytes
        self._peak = max(self._peak, self._current)

    def reset(self) -> None:
        self._peak = self._current

    def empty_cache(self) -> None:
        gc.collect()

    def peaks(self) -> dict[str, int]:
        return {"requested": self._peak}

    def record(self) -> None:
        self._events.clear()
        self._allocs = 0

    def counts(self) -> tuple[int, int]:
        return self._allocs, len(self._events) - self._allocs

    def events(self) -> list[Event]:
        return list(self._events)
