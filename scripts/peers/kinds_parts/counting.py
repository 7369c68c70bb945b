"""Counts live bytes of a graph while PyTorch executes it on real tensors, node by node.

Counts storages by their own nbytes; knows nothing of fxopt.

The caller holds inputs and attributes throughout, and outputs to the end. Every other value is
freed after its last user, or at once if it has none. Memory that a call takes and releases while it
runs is not counted.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree


@dataclass
class Counted:
    bytes: int = 0
    node: str = ""  # the first node that reaches it


def storages(values: Iterable[object]) -> dict[int, int]:
    """Bytes by storage."""
    found = {}
    for leaf in pytree.tree_leaves(list(values)):
        if isinstance(leaf, Tensor):
            storage = leaf.untyped_storage()
            found[storage._cdata] = storage.nbytes()
    return found


class Run:
    """One execution. `peak` includes the values in `beside`."""

    def __init__(self, graph_module: GraphModule, beside: Iterable[object] = ()) -> None:
        self.interpreter = Interpreter(graph_module, garbage_collect_values=False)
        self.nodes = list(graph_module.graph.nodes)
        self.attributes = [operator.attrgetter(node.target)(graph_module) for node in self.nodes if node.op == "get_attr"]
        self.beside = list(beside)
        self.peak = Counted()
        self.live: dict[str, int] = {}  # by node

    def run(self, inputs: Sequence[object], going: Mapping[str, object] | None = None) -> list[object]:
        """Returns the graph's outputs. going: inputs that only this run holds, by the name of the
        placeholder: each is freed after its last user, or stays if it has none."""
        going = dict(going or {})
        last = {source: node for node in self.nodes for source in node.all_input_nodes}
        held = [*inputs, *self.attributes, *self.beside]
        values: dict[Node, object] = {}
        given = iter(inputs)
        for node in self.nodes:
            if node.op == "placeholder":
                values[node] = going[node.name] if node.name in going else next(given)
        output = self.nodes[-1]
        for node in self.nodes:
            if node is output:
                self._measure(node, [*held, *values.values()])
                return leaves_of(torch.fx.node.map_arg(node.args[0], values.__getitem__))
            if node.op != "placeholder":
                values[node] = self._call(node, values)
            self._measure(node, [*held, *values.values()])
            for source in {node, *node.all_input_nodes}:
                is_own = source.op not in ("placeholder", "get_attr") or source.name in going and source.users
                if is_own and last.get(source, source) is node:
                    going.pop(source.name, None)
                    del values[source]
        raise AssertionError("a graph without an output")

    def _call(self, node: Node, values: Mapping[Node, object]) -> object:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        return getattr(self.interpreter, node.op)(node.target, args, kwargs)

    def _measure(self, node: Node, values: Iterable[object]) -> None:
        total = sum(storages(values).values())
        self.live[node.name] = total
        if total > self.peak.bytes:
            self.peak = Counted(total, node.name)


def counted(graph_module: GraphModule, inputs: Sequence[object]) -> Run:
    with torch.no_grad():
        run = Run(graph_module)
        run.run(inputs)
    return run


def peak_of_pair(
    forward: GraphModule,
    backward: GraphModule,
    inputs: Mapping[str, object],
    written: Mapping[int, str],
    count: int,
) -> Counted:
    """The peak of forward, then backward. inputs: by name, for both. written: outputs of forward
    that are new values of inputs, written to them in between. count: outputs of forward that its
    caller keeps, except the written ones."""
    first_inputs = [inputs[name] for name in names_of(forward)]
    with torch.no_grad():
        tangents = names_of(backward)
        names = [getattr(leaf, "name", "") for leaf in outputs_of(forward)]
        first = Run(forward)
        outputs = first.run(first_inputs)
        for place, name in written.items():
            inputs[name].copy_(outputs[place])
        kept = [outputs[place] for place in range(count) if place not in written]
        saved = {name: value for name, value in zip(names, outputs, strict=True) if name in tangents and name not in inputs}
        del outputs
        second_inputs = [inputs[name] for name in names_of(backward) if name not in saved]
        second = Run(backward, [*first_inputs, *first.attributes, *kept])
        second.run(second_inputs, saved)
    return max(first.peak, second.peak, key=lambda peak: peak.bytes)


def names_of(graph_module: GraphModule) -> list[str]:
    """The names of its placeholders."""
    return [node.name for node in graph_module.graph.find_nodes(op="placeholder")]


def leaves_of(value: object) -> list[object]:
    """Its leaves, including None."""
    return pytree.tree_leaves(value, is_leaf=lambda leaf: leaf is None)


def outputs_of(graph_module: GraphModule) -> list[object]:
    return leaves_of(graph_module.graph.output_node().args[0])


def sizes_of_symbols(graph_module: GraphModule, inputs: Sequence[object]) -> dict[str, int]:
    """The values of data-dependent symbols in this execution, by name."""
    found: dict[str, int] = {}

    class Reading(Interpreter):
        def run_node(self, node: Node) -> object:
            result, value = super().run_node(node), node.meta.get("val")
            for real, known in zip(pytree.tree_leaves(result), pytree.tree_leaves(value)):
                pairs = (
                    zip(real.shape, known.shape) if isinstance(real, Tensor) and isinstance(known, Tensor) else [(real, known)]
                )
                for number, symbol in pairs:
                    if isinstance(symbol, torch.SymInt) and symbol.node.expr.is_symbol and symbol.node.hint is None:
                        found[str(symbol.node.expr)] = int(number)
            return result

    with torch.no_grad():
        Reading(graph_module).run(*inputs)
    return found


def other_record(graph_module: GraphModule, inputs: Sequence[object], sizes: Mapping[str, int]) -> str:
    """The first node whose real result has a storage of another size than PyTorch recorded while
    tracing; empty if none has. sizes: values of symbols without a hint."""
    found: list[str] = []

    class Compared(Interpreter):
        def run_node(self, node: Node) -> object:
            result, value = super().run_node(node), node.meta.get("val")
            if node.op == "call_function" and not found and value is not None:
                real, known = (
                    sorted(storages([item]).values(), key=lambda size: _number(size, sizes)) for item in (result, value)
                )
                known = [_number(size, sizes) for size in known]
                if real != known:
                    found.append(f"%{node.name} ({node.target}) has a storage of {real} bytes, recorded are {known}")
            return result

    with torch.no_grad():
        Compared(graph_module).run(*inputs)
    return found[0] if found else ""


def recorded_peak(graph_module: GraphModule, sizes: Mapping[str, int]) -> int:
    """The same peak over the values that PyTorch recorded while tracing; kernels may make other
    storages."""
    nodes = list(graph_module.graph.nodes)
    last = {source: node for node in nodes for source in node.all_input_nodes}
    held = [node for node in nodes if node.op in ("placeholder", "get_attr")]
    live: dict[Node, object] = {node: node.meta.get("val") for node in held}
    peak = 0
    for node in nodes[:-1]:
        live.setdefault(node, node.meta.get("val"))
        peak = max(peak, sum(_number(size, sizes) for size in storages(live.values()).values()))
        for source in {node, *node.all_input_nodes}:
            if source not in held and last.get(source, source) is node:
                del live[source]
    return peak


def _number(size: int | torch.SymInt, sizes: Mapping[str, int]) -> int:
    """The size as a number; -1 if a symbol has no value."""
    if not isinstance(size, torch.SymInt):
        return size
    expression = size.node.expr.subs(
        {symbol: sizes[str(symbol)] for symbol in size.node.expr.free_symbols if str(symbol) in sizes}
    )
    return int(expression) if expression.is_number else size.node.hint if size.node.hint is not None else -1
