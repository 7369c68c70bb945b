"""Counts the ideal peak of a torch.fx graph by running it over fake tensors. Knows nothing of fxopt and reads none of its files.

The model: unrounded bytes of the storages that are live, node by node in schedule order. Inputs and constants are live
throughout, outputs to the end; a node's inputs and its outputs coexist; a value dies after its last reader. A wait hands back
its input, and what a collective reads is held until the last wait on it.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

_WAIT = "_c10d_functional::wait_tensor"


class CountError(ValueError):
    """A graph that cannot be counted; the message names the node."""


@dataclass
class Peak:
    bytes: int = 0
    node: str = ""  # the first at which the peak is reached
    storages: int = 0  # live there, empty ones left out


@dataclass
class _Live:
    """The storages that some live value holds, by address, and their bytes by device."""

    holders: dict[int, int] = field(default_factory=dict)
    records: dict[int, tuple[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def storages(value: object) -> Iterator[tuple[int, str, int]]:
        seen = set()
        for leaf in tree_leaves(value):
            if not isinstance(leaf, torch.Tensor):
                continue
            storage = leaf.untyped_storage()
            if storage._cdata not in seen:
                seen.add(storage._cdata)
                yield storage._cdata, str(leaf.device), storage.nbytes()

    def hold(self, value: object) -> None:
        for key, device, size in self.storages(value):
            if not isinstance(size, int):
                raise CountError(f"a storage of symbolic size {size}")
            if key not in self.holders:
                self.holders[key] = 0
                self.records[key] = (device, size)
                self.totals[device] = self.totals.get(device, 0) + size
            self.holders[key] += 1

    def count(self, device: str) -> int:
        return sum(where == device and size > 0 for where, size in self.records.values())

    def release(self, value: object) -> None:
        for key, _, _ in self.storages(value):
            self.holders[key] -= 1
            if self.holders[key] == 0:
                device, size = self.records.pop(key)
                self.totals[device] -= size
                del self.holders[key]


def _schema_name(node: Node) -> str:
    return node.target._schema.name if isinstance(node.target, torch._ops.OpOverload) else ""


def _waits(node: Node) -> Iterator[Node]:
    """The waits on what a collective gives, also behind getitems."""
    for user in node.users:
        if _schema_name(user) == _WAIT:
            yield user
        elif user.target is operator.getitem:
            yield from _waits(user)


def _deaths(nodes: list[Node]) -> dict[Node, list[Node]]:
    """After each node, the nodes whose values die there. Values of inputs and outputs never do."""
    position = {node: i for i, node in enumerate(nodes)}
    last = dict(position)
    for i, node in enumerate(nodes):
        held = i
        if _schema_name(node).startswith("_c10d_functional::") and _schema_name(node) != _WAIT:
            held = max([i, *(position[wait] for wait in _waits(node))])
            last[node] = max(last[node], held)
        for source in node.all_input_nodes:
            last[source] = max(last[source], held)
    deaths: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            deaths.setdefault(nodes[last[node]], []).append(node)
    return deaths


def _attribute(graph_module: GraphModule, node: Node, mode: FakeTensorMode) -> object:
    item = operator.attrgetter(node.target)(graph_module)
    is_real = isinstance(item, torch.Tensor) and not isinstance(item, FakeTensor)
    return mode.from_tensor(item) if is_real else item


def _run(node: Node, values: dict[Node, object]) -> object:
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
    if _schema_name(node) == _WAIT:
        return args[0]
    return node.target(*args, **kwargs)


@contextlib.contextmanager
def _without_cache(mode: FakeTensorMode) -> Iterator[None]:
    """Every call computes its own result, whatever an earlier one gave."""
    before, mode.cache_enabled = mode.cache_enabled, False
    try:
        yield
    finally:
        mode.cache_enabled = before


def count_peaks(graph_module: GraphModule) -> dict[str, Peak]:
    """The ideal peak of each device. Placeholders carry fake tensors in meta['val']; every other value is computed anew.

    Takes as long as running the graph over fake tensors. CountError for a graph without fake inputs, or with symbolic sizes.
    """
    nodes = list(graph_module.graph.nodes)
    given = tree_leaves([node.meta.get("val") for node in nodes if node.op == "placeholder"])
    mode = next((value.fake_mode for value in given if isinstance(value, FakeTensor)), None)
    if mode is None:
        raise CountError("no placeholder carries a fake tensor in meta['val']")
    live, values, peaks = _Live(), {}, {}
    with mode, torch.no_grad(), _without_cache(mode):
        for node in nodes:
            if node.op in ("placeholder", "get_attr"):
                values[node] = node.meta["val"] if node.op == "placeholder" else _attribute(graph_module, node, mode)
                live.hold(values[node])
        deaths = _deaths(nodes)
        for node in nodes:
            if node.op not in ("placeholder", "get_attr", "output"):
                try:
                    values[node] = _run(node, values)
                except Exception as error:
                    raise CountError(f"node {node.name} ({node.target}): {error}") from error
                live.hold(values[node])
            for device, total in live.totals.items():
                if total > peaks.setdefault(device, Peak()).bytes:
                    peaks[device] = Peak(total, node.name, live.count(device))
            for dead in deaths.get(node, ()):
                live.release(values.pop(dead))
    return peaks
