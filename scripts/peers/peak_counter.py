"""Counts the ideal peak of a torch.fx graph by running it over fake tensors.

Knows nothing of fxopt and reads none of its files.

The model: unrounded bytes of the live storages, node by node in schedule order. Inputs and
constants are live throughout, outputs to the end. A node's inputs and its outputs coexist, and a
value dies after its last user. A donated input dies so too. A wait returns its input, and a
collective's inputs are held until the last wait on it. control_deps represents the single call of
its subgraph; it reads its dependencies, as any call reads its arguments.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from bound_values import BoundError, BoundGraph
from room import LEAVES_ROOM, left_room
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

_WAIT = "_c10d_functional::wait_tensor"
_GIVEN = ("placeholder", "get_attr")

CountError = BoundError


@dataclass
class Storage:
    """The bytes behind one or more values, live from position `first` to `last` of the schedule,
    both included."""

    node: str  # the node that made it
    device: str
    bytes: int
    first: int
    last: int


@dataclass
class Peak:
    bytes: int = 0
    node: str = ""  # the first node that reaches the peak
    position: int = 0
    storages: int = 0  # number live there, without empty ones


@dataclass
class _Live:
    """The storages that some live value holds, by address, and their bytes by device."""

    holders: dict[int, int] = field(default_factory=dict)
    records: dict[int, Storage] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    ended: list[Storage] = field(default_factory=list)

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

    def hold(self, node: Node, position: int, value: object, room: Mapping[int, int] | None = None) -> None:
        """room: the least bytes of a storage, by its address."""
        for key, device, recorded in self.storages(value):
            size = max(recorded, (room or {}).get(key, 0))
            if key not in self.holders:
                self.holders[key] = 0
                self.records[key] = Storage(node.name, device, size, position, position)
                self.totals[device] = self.totals.get(device, 0) + size
            self.holders[key] += 1

    def count(self, device: str) -> int:
        return sum(record.device == device and record.bytes > 0 for record in self.records.values())

    def release(self, position: int, value: object) -> None:
        for key, _, _ in self.storages(value):
            self.holders[key] -= 1
            if self.holders[key] == 0:
                self._end(key, position)
                del self.holders[key]

    def _end(self, key: int, position: int) -> None:
        record = self.records.pop(key)
        record.last = position
        self.totals[record.device] -= record.bytes
        self.ended.append(record)

    def end_all(self, position: int) -> list[Storage]:
        for key in list(self.records):
            self._end(key, position)
        return self.ended


@dataclass
class Replay:
    peaks: dict[str, Peak]  # by device
    storages: list[Storage]

    def live(self, device: str) -> list[Storage]:
        """The storages that make up a device's peak, without empty ones."""
        at = self.peaks[device].position
        return [s for s in self.storages if s.device == device and s.first <= at <= s.last and s.bytes > 0]


def _schema_name(target: object) -> str:
    return target._schema.name if isinstance(target, torch._ops.OpOverload) else ""


def _is_ordered(node: Node) -> bool:
    """Whether the node is a control_deps: (its dependencies), a subgraph of one call, the call's
    arguments."""
    return isinstance(node.target, torch._ops.HigherOrderOperator) and node.target._name == "control_deps"


class _Counter:
    """One replay."""

    def __init__(
        self, bound: BoundGraph, donated: Collection[str], live: _Live | None = None, given: Mapping[str, object] | None = None
    ) -> None:
        self.bound = bound
        self.donated = donated
        self.values: dict[Node, object] = {}
        self.live = _Live() if live is None else live
        self.given = given or {}  # values by placeholder that the bound graph does not make
        self.peaks: dict[str, Peak] = {}

    def _name(self, node: Node) -> str:
        """The schema's name of a node's callee, or of the call inside control_deps; empty if it has
        none."""
        if not _is_ordered(node):
            return _schema_name(node.target)
        calls = [inner for inner in self._body(node).graph.nodes if inner.op == "call_function"]
        return _schema_name(calls[0].target) if len(calls) == 1 else ""

    def _body(self, node: Node) -> GraphModule:
        return operator.attrgetter(node.args[1].target)(self.bound.graph_module)

    def _waits(self, node: Node) -> Iterator[Node]:
        """The waits on a collective's result, also through getitems."""
        for user in node.users:
            if self._name(user) == _WAIT:
                yield user
            elif user.target is operator.getitem:
                yield from self._waits(user)

    def _deaths(self) -> dict[Node, list[Node]]:
        """After each node, the nodes whose values die there. Outputs never do, nor inputs that are
        not donated."""
        nodes = self.bound.nodes
        position = {node: i for i, node in enumerate(nodes)}
        last = dict(position)
        for i, node in enumerate(nodes):
            held = i
            if self._name(node).startswith("_c10d_functional::") and self._name(node) != _WAIT:
                held = max([i, *(position[wait] for wait in self._waits(node))])
                last[node] = max(last[node], held)
            for source in node.all_input_nodes:
                last[source] = max(last[source], held)
        deaths: dict[Node, list[Node]] = {}
        for node in nodes:
            if node.op == "call_function" or node.name in self.donated:
                deaths.setdefault(nodes[last[node]], []).append(node)
        return deaths

    def _call(self, node: Node, position: int) -> None:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.values.__getitem__)
        room: dict[int, int] = {}
        if self._name(node) == _WAIT:
            value = args[2] if _is_ordered(node) else args[0]
        else:
            value = self.bound.call(node, args, kwargs)
            if node.target in LEAVES_ROOM:
                tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
                sizes = left_room(node.target, args, kwargs, value)
                room = {tensor.untyped_storage()._cdata: size for tensor, size in zip(tensors, sizes)}
        self.values[node] = value
        self.live.hold(node, position, value, room)

    def _measure(self, node: Node, position: int) -> None:
        for device, total in self.live.totals.items():
            if total > self.peaks.setdefault(device, Peak()).bytes:
                self.peaks[device] = Peak(total, node.name, position, self.live.count(device))

    def take_inputs(self) -> None:
        for node in self.bound.nodes:
            if node.op in _GIVEN:
                self.values[node] = self.given[node.name] if node.name in self.given else self.bound.given(node)
                self.live.hold(node, 0, self.values[node])

    def run(self) -> None:
        """Runs the graph. Its inputs and outputs stay live for the caller; `values` keeps the
        outputs."""
        deaths = self._deaths()
        for position, node in enumerate(self.bound.nodes):
            if node.op not in (*_GIVEN, "output"):
                self._call(node, position)
            self._measure(node, position)
            for dead in deaths.get(node, ()) if node.op != "output" else ():
                self.live.release(position, self.values.pop(dead))


def replay(bound: BoundGraph, donated: Collection[str] = ()) -> Replay:
    """Runs the graph node by node over fake tensors. Raises CountError if that is impossible.

    donated: placeholders whose values the caller does not keep.
    """
    with bound.mode, torch.no_grad():
        counter = _Counter(bound, donated)
        counter.take_inputs()
        counter.run()
        return Replay(counter.peaks, counter.live.end_all(len(bound.nodes) - 1))


def replay_pair(forward: BoundGraph, backward: BoundGraph, saved: Mapping[str, int], mutated: Collection[int]) -> dict[str, int]:
    """The ideal peaks of both graphs in one process: PyTorch's runtime between them, by hand.

    The forward graph runs. The new values of mutated inputs are copied and freed. Saved values move
    to backward and die after their last user there; the caller keeps the other outputs. Then the
    backward graph runs, on these and on its own tangents.

    saved: by input of the backward graph, the forward graph's output. mutated: outputs that are new
    values of inputs.
    """
    backward.mode = forward.mode
    with forward.mode, torch.no_grad():
        first = _Counter(forward, ())
        first.take_inputs()
        first.run()
        leaves = tree_leaves(forward.nodes[-1].args[0])
        given = {name: first.values[leaves[at]] for name, at in saved.items()}
        read = {node.name for node in backward.nodes if node.op == "placeholder" and node.users}
        second = _Counter(backward, saved.keys() & read, first.live, given)
        second.take_inputs()
        gone = {*saved.values(), *mutated}
        kept = {leaf for at, leaf in enumerate(leaves) if at not in gone}
        for node, value in first.values.items():
            if node.op == "call_function" and node not in kept:
                first.live.release(0, value)
        second.run()
    devices = first.peaks.keys() | second.peaks.keys()
    return {device: max(side.peaks[device].bytes for side in (first, second) if device in side.peaks) for device in devices}


def count_peaks(graph_module: GraphModule) -> dict[str, Peak]:
    """The ideal peak of each device. Placeholders carry fake tensors in meta['val']; every other
    value is recomputed."""
    return replay(BoundGraph(graph_module)).peaks
