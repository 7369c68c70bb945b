"""The graphs of testdata/ that come from PyTorch: one file per family, and here their shared
code."""

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
Traced = tuple[GraphModule, Told]  # a graph, and its keyword arguments of bridge.save


@dataclass(frozen=True)
class Substitution:
    """A difference between a graph and its small copy, which fits in memory and runs on a CPU."""

    full: str
    twin: str
    reason: str


@dataclass(frozen=True)
class Graph:
    """One file of testdata: how it is traced, and its description in README.md."""

    trace: Callable[[], Traced]
    about: str
    # For a small copy: real, the same at each call.
    inputs: Callable[[], list[object]] | None = None
    # For a small copy: differences from the graph without `_twin` in its name.
    substitutions: Sequence[Substitution] = field(default=())
    has_ranks: bool = False  # can be traced for ranks other than the first
    has_mesh: bool = False  # can be traced for another mesh of two dimensions


@dataclass
class Place:
    """The rank and mesh that this process traces for; None: the graph's defaults."""

    rank: int | None = None
    mesh: tuple[int, int] | None = None


place = Place()


_open = contextlib.ExitStack()
atexit.register(_open.close)


def keep_open() -> contextlib.ExitStack:
    """Returns a stack that stays open until close(). AOTAutograd's graphs are valid only while
    their stack is open."""
    return _open.enter_context(contextlib.ExitStack())


def close() -> None:
    """Closes the stacks of this process's traces. Call it after the last use of their graphs."""
    _open.close()


def number_identities(graph_module: GraphModule) -> None:
    """Makes repeated traces equal.

    Dynamo and torch.export write memory addresses as names of modules and graphs (nn_module_stack,
    from_node). They become 0, 1, 2, ... in order of appearance. Addresses of functions are removed.
    """
    numbers: dict[object, int] = {}

    def number(address: object) -> int:
        return numbers.setdefault(str(address), len(numbers))

    def visit(source: NodeSource) -> None:
        if source.node_info is not None and id(source) not in seen:
            seen.add(id(source))
            source.node_info.graph_id = number(source.node_info.graph_id)
            source.node_info.target = re.sub(" at 0x[0-9a-f]+", "", source.node_info.target)
            source._dict = None  # the cache of to_dict()
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
    """Joins a process group of `size` ranks, of which only this one exists. `place.rank`, if set,
    replaces `rank`.

    Collectives copy as if every rank held the same values as this one. Graphs with collectives run
    and give the same numbers each time.
    """
    from torch.testing._internal.distributed.fake_pg import FakeProcessGroup, FakeStore

    rank = rank if place.rank is None else place.rank
    if not 0 <= rank < size:
        raise RuntimeError(f"rank {rank} does not exist among {size} ranks")
    if torch.distributed.is_initialized():
        if (torch.distributed.get_world_size(), torch.distributed.get_rank()) != (size, rank):
            raise RuntimeError(f"this process is already in a group of {torch.distributed.get_world_size()} ranks")
        return
    options = FakeProcessGroup.Options()
    options.simulate_uniform_ranks = True
    torch.distributed.init_process_group("fake", rank=rank, world_size=size, store=FakeStore(), pg_options=options)


def random_like(value: Tensor, generator: torch.Generator) -> Tensor:
    """Returns a real tensor of small numbers on the CPU, with the sizes, strides and dtype of
    `value`."""
    result = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    if value.dtype.is_floating_point:
        return result.copy_(torch.randn(value.shape, generator=generator) * 0.05)
    return result.zero_()


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(178935)
