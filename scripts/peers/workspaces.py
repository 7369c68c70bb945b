"""Bills each allocation to a node of a graph: results, and other memory that an operator takes."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from bound_values import BoundGraph
from cuda_meter import CudaMeter, Event, FakeMeter
from torch._subclasses import FakeTensor
from torch.fx import GraphModule, Interpreter, Node
from torch.utils._pytree import tree_leaves


@dataclass
class Bill:
    """The allocations of one node, in order."""

    node: str
    target: str
    results: list[int] = field(default_factory=list)  # new storages of its results, in bytes
    hidden: list[int] = field(default_factory=list)  # anything else
    peak: int = 0  # the most of its own allocations held at once

    @property
    def beside(self) -> int:
        """Bytes above its results at its own peak, called workspace in a device profile."""
        return max(0, self.peak - sum(self.results))


class _Biller(Interpreter):
    """Runs a graph and records the number of allocations and frees after each node."""

    def __init__(self, graph_module: GraphModule, meter: CudaMeter | FakeMeter, bound: BoundGraph | None) -> None:
        super().__init__(graph_module)
        self._meter = meter
        self._bound = bound
        self.nodes: list[Node] = []
        self.counts: list[tuple[int, int]] = []
        self.addresses: list[list[int]] = []  # addresses of the storages of each node's value

    def run_node(self, node: Node) -> object:
        if node.op == "get_attr" and self._bound is not None:
            return self._bound.given(node)
        if node.op != "call_function":
            return super().run_node(node)
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        value = node.target(*args, **kwargs) if self._bound is None else self._bound.call(node, args, kwargs)
        self.nodes.append(node)
        self.counts.append(self._meter.counts())
        self.addresses.append([_address(leaf) for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)])
        return value if node.users else None


def _address(tensor: torch.Tensor) -> int:
    """The storage's name in the meter."""
    storage = tensor.untyped_storage()
    return storage._cdata if isinstance(tensor, FakeTensor) else storage.data_ptr()


def bill(
    graph_module: GraphModule, inputs: Sequence[object], meter: CudaMeter | FakeMeter, bound: BoundGraph | None = None
) -> list[Bill]:
    """Runs the graph once, node by node, under no_grad, and bills every allocation to its node.

    bound: runs it over these fake tensors. Frees after a node's call, of its operands, are not
    billed to it.
    """
    biller = _Biller(graph_module, meter, bound)
    meter.record()
    with torch.no_grad():
        biller.run(*inputs)
    return assign(biller.nodes, biller.counts, biller.addresses, meter.events())


def assign(
    nodes: Sequence[Node], counts: Sequence[tuple[int, int]], addresses: Sequence[Sequence[int]], events: Sequence[Event]
) -> list[Bill]:
    """The bill of each node. counts: allocations and frees so far, after each node; addresses: the
    storages of its results."""
    ends = [[count[kind] for count in counts] for kind in (0, 1)]
    seen = [0, 0]
    by_node: list[list[Event]] = [[] for _ in nodes]
    for event in events:
        kind = 0 if event.is_alloc else 1
        position = bisect.bisect_right(ends[kind], seen[kind])
        seen[kind] += 1
        if position < len(nodes):
            by_node[position].append(event)
    return [_bill(node, found, set(given)) for node, found, given in zip(nodes, by_node, addresses)]


def _bill(node: Node, events: Sequence[Event], given: set[int]) -> Bill:
    result = Bill(node.name, str(node.target))
    allocs = [event for event in events if event.is_alloc]
    # an address may be used again
    last = {event.address: position for position, event in enumerate(allocs)}
    for position, event in enumerate(allocs):
        is_result = event.address in given and last[event.address] == position
        (result.results if is_result else result.hidden).append(event.bytes)
    held: dict[int, int] = {}
    for event in events:  # frees of earlier nodes' results are not counted
        if event.is_alloc:
            held[event.address] = event.bytes
        else:
            held.pop(event.address, None)
        result.peak = max(result.peak, sum(held.values()))
    return result


def by_operator(bills: Sequence[Bill]) -> dict[str, dict[str, object]]:
    """Operators that take more than their results: the number of nodes, the largest amount, and its
    node."""
    result: dict[str, dict[str, object]] = {}
    for entry in bills:
        if not entry.hidden:
            continue
        row = result.setdefault(entry.target, {"nodes": 0, "peak_bytes": -1, "at": "", "sizes": []})
        row["nodes"] += 1
        if entry.beside > row["peak_bytes"]:
            row |= {"peak_bytes": entry.beside, "at": entry.node, "sizes": entry.hidden}
    return dict(sorted(result.items()))


def only_first(first: Sequence[Bill], second: Sequence[Bill]) -> list[Bill]:
    """Memory besides results that nodes took in the first run only: libraries keep it."""
    result = []
    for one, other in zip(first, second):
        left = Counter(one.hidden) - Counter(other.hidden)
        if left:
            sizes = list(left.elements())
            result.append(Bill(one.node, one.target, [], sizes, sum(sizes)))
    return result


def first_difference(
    bills: Sequence[Bill], predicted: Mapping[str, Sequence[int]], *, is_hidden_expected: bool = False
) -> str:
    """The first node whose allocation sizes differ from the predicted ones, in words; or empty.

    is_hidden_expected: memory besides results counts as no difference.
    """
    for entry in bills:
        expected, found = sorted(predicted.get(entry.node, ())), sorted(entry.results)
        if expected != found:
            return f"%{entry.node} ({entry.target}): results of {found} bytes, predicted {expected}"
        if entry.hidden and not is_hidden_expected:
            return f"%{entry.node} ({entry.target}): beside its results {entry.hidden} bytes"
    return ""
