"""The graphs of testdata/ that come from PyTorch: one file for each family, and what all of them share here."""

from __future__ import annotations

import atexit
import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.traceback import NodeSource

Told = dict[str, object]
Traced = tuple[GraphModule, Told]  # a graph, and the keyword arguments of bridge.save for it


@dataclass(frozen=True)
class Substitution:
    """One thing that a twin has in place of another, so that it fits in memory and runs on a CPU."""

    full: str
    twin: str
    reason: str


@dataclass(frozen=True)
class Graph:
    """One file of testdata: how it is traced, and what README says of it."""

    trace: Callable[[], Traced]
    about: str
    inputs: Callable[[], list[object]] | None = None  # of a twin: real ones, the same at each call
    substitutions: Sequence[Substitution] = field(default=())  # of a twin, against the graph without `_twin`
    has_ranks: bool = False  # it can be traced for another rank than the first
    has_mesh: bool = False  # and for another mesh of two dimensions


@dataclass
class Place:
    """The rank that this process traces for, and the mesh; None: those that the graph has by itself."""

    rank: int | None = None
    mesh: tuple[int, int] | None = None


place = Place()


_open = contextlib.ExitStack()
atexit.register(_open.close)


def keep_open() -> contextlib.ExitStack:
    """A stack that stays open until close(): AOTAutograd's graphs are whole only while theirs is."""
    return _open.enter_context(contextlib.ExitStack())


def close() -> None:
    """Ends what the traces of this process kept open; call it when their graphs are done with."""
    _open.close()


def number_identities(graph_module: GraphModule) -> None:
    """Puts 0, 1, 2, ... in order of appearance for the memory addresses that Dynamo and torch.export write as names of
    modules and graphs (nn_module_stack, from_node), and none for those of functions, so that a graph made twice is the
    same."""
    numbers: dict[object, int] = {}

    def number(address: object) -> int:
        return numbers.setdefault(str(address), len(numbers))

    def visit(source: NodeSource) -> None:
        if source.node_info is not None and id(source) not in seen:
            seen.add(id(source))
            source.node_info.graph_id = number(source.node_info.graph_id)
            source.node_info.target = re.sub(" at 0x[0-9a-f]+", "", source.node_info.target)
            source._dict = None  # what to_dict() kept
            for inner in source.from_node:
                visit(inner)

    seen: set[int] = set()
    stacks = ("nn_module_stack", "fwd_nn_module_stack")
    parts = [part for part in graph_module.modules() if isinstance(part, GraphModule)]
    for node in (node for part in parts for node in part.graph.nodes):
        for key in stacks:
            if isinstance(stack := node.meta.get(key), dict):
                named = {str(number(k)) if k.isdecimal() else k: v for k, v in stack.items()}
                node.meta[key] = type(stack)(named)
        for source in node.meta.get("from_node", ()):
            visit(source)


def fake_world(size: int, rank: int = 0) -> None:
    """Joins a process group of `size` ranks of which only this one exists, `rank` unless `place` says another. Collectives
    copy as if every rank held what this one holds, so that graphs with them run and give the same numbers each time."""
    from torch.testing._internal.distributed.fake_pg import FakeProcessGroup, FakeStore

    rank = rank if place.rank is None else place.rank
    if not 0 <= rank < size:
        raise RuntimeError(f"no rank {rank} among {size}")
    if torch.distributed.is_initialized():
        if (torch.distributed.get_world_size(), torch.distributed.get_rank()) != (size, rank):
            raise RuntimeError(f"this process is in a group of {torch.distributed.get_world_size()} ranks already")
        return
    options = FakeProcessGroup.Options()
    options.simulate_uniform_ranks = True
    torch.distributed.init_process_group("fake", rank=rank, world_size=size, store=FakeStore(), pg_options=options)


def random_like(value: Tensor, generator: torch.Generator) -> Tensor:
    """A small real tensor on the CPU with the sizes, strides and dtype of `value`."""
    result = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    if value.dtype.is_floating_point:
        return result.copy_(torch.randn(value.shape, generator=generator) * 0.05)
    return result.zero_()


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(178935)
