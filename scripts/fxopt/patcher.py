"""Run passes of fxopt on a GraphModule in place.

The module is written for the program. Then its nodes are moved, changed, erased and created as in
the result. Nodes are matched by uid; a node that no pass touched stays the same object.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import json
import operator
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, GraphModule, Node

from fxopt import form, tool
from fxopt.form import Json
from fxopt.objects import find
from fxopt.reader import ArgReader, create_node, give_node_meta, marks_of, placed_elsewhere
from fxopt.symbols import SymbolReader
from fxopt.training import TRAINING_FIELDS, TRAINING_KEYS
from fxopt.values import ValueReader
from fxopt.writer import REPLAY_KEYS, Exporter, Provenance

# Fields of a node's message that decide whether it changed.
_READ_FIELDS = ("name", "target", "args", "kwargs", *TRAINING_FIELDS)


def apply(
    graph_module: GraphModule,
    passes: str | None,
    program: str,
    options: Sequence[str],
    told: Mapping[str, object],
) -> None:
    """Runs a pipeline over `graph_module` and patches it."""
    exporter = Exporter(pathlib.Path("module.json"), is_lenient=True)
    before = exporter.module(graph_module, **told)
    tool.tell_decisions(f"fxopt.apply {'the default pipeline' if passes is None else repr(passes)}", before)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, target = folder / "before.json", folder / "after.json"
        form.write_json(before, source)
        envelope = tool.call(program, [*_command(passes), str(source), "-o", str(target), *options], folder)
        after = json.loads(target.read_text(encoding="utf-8"))["module"]
    _Patch(exporter, before, after).run(graph_module)
    tool.warn_of(envelope)


def _command(passes: str | None) -> list[str]:
    if passes == "":
        return ["convert"]
    return ["opt", "--raise-control-deps", *([] if passes is None else ["--passes", passes])]


def _custom_of(message: Json) -> Json | None:
    return next((entry["value"] for entry in message.get("meta", ()) if entry["key"] == "custom"), None)


def _without_replay(custom: object) -> dict[str, object]:
    """Returns the metadata `custom` without a first partition's mark, which passes write."""
    return {key: value for key, value in custom.items() if key not in REPLAY_KEYS} if isinstance(custom, dict) else {}


@dataclasses.dataclass
class _Change:
    """The new state of a node. dropped: metadata keys to remove; meta: metadata to set."""

    node: Node
    name: str
    target: object
    args: tuple
    kwargs: dict[str, Any]
    meta: dict[str, object]
    dropped: list[str]

    def carry_out(self) -> None:
        node = self.node
        if node.name != self.name:
            node.name = self.name
            node.graph._graph_namespace._used_names.add(self.name)
        if node.target is not self.target:
            node.target = self.target
        if not _same(self.args, node.args):
            node.args = self.args
        if not _same(self.kwargs, dict(node.kwargs)):
            node.kwargs = self.kwargs
        for key in self.dropped:
            del node.meta[key]
        node.meta.update(self.meta)


@dataclasses.dataclass
class _Plan:
    """The new state of a graph: new subgraphs of its module, nodes in order, changed and erased
    nodes."""

    graph_module: GraphModule
    children: dict[str, GraphModule]
    nodes: list[Node]
    changes: list[_Change] = dataclasses.field(default_factory=list)
    erased: list[Node] = dataclasses.field(default_factory=list)


class _Patch:
    def __init__(self, exporter: Exporter, before: Json, after: Json) -> None:
        self.exporter = exporter
        self.after = after
        self._modules = {name: graph for name, graph, _ in exporter.graphs}
        self._before = {graph["name"]: {node["uid"]: node for node in graph["nodes"]} for graph in before["graphs"]}
        self._nodes = {uid: node for node, uid in exporter.uids.items()}
        self._fields: dict[Node, Json] = {}
        self._matched: set[Node] = set()  # nodes of the current graph that messages name by uid
        mode = _fake_mode(exporter)
        symbols = SymbolReader.over(exporter.values.symbols)
        values = None
        if mode is not None:
            values = ValueReader(after, symbols, mode)
            values.storages.update(exporter.values.held)
        # Not a bound method of this object: the cycle would keep the messages alive until the
        # collector runs.
        self._graph_module = functools.partial(_module_named, self._modules)
        self._args = _KnownArgs(exporter, symbols, values, self._graph_module)
        self._args.nodes_of_uids.update(self._nodes)

    def run(self, graph_module: GraphModule) -> None:
        """Patches the module. If this raises, the module is unchanged."""
        created: list[Node] = []
        env = self.exporter.values.symbols.shape_env
        try:
            # New values would add guards.
            with contextlib.nullcontext() if env is None else env.suppress_guards():
                plans = [self._plan(record, created) for record in self.after["graphs"]]
        except BaseException:
            for node in reversed(created):
                node.graph.erase_node(node)
            raise
        for plan in plans:
            self._carry_out(plan)
        _recompile([plan.graph_module for plan in reversed(plans)])
        values = self._args.values
        storages = self.exporter.values.held if values is None else values.storages
        Provenance(self.after, self._args.nodes_of_uids, self._fields, storages).attach(graph_module)

    def _plan(self, record: Json, created: list[Node]) -> _Plan:
        """Plans a graph's changes. New nodes are created in it without arguments, the others
        untouched."""
        graph_module = self._graph_module(record["name"])
        graph = graph_module.graph
        before = self._before.get(record["name"], {})
        old = {node.name: node for node in graph.nodes}
        self._matched = {self._nodes[uid] for uid in before.keys() & {int(m["uid"]) for m in record["nodes"]}}
        found = [self._find(message, before, old) for message in record["nodes"]]
        last = next(iter(reversed(graph.nodes)), None)
        names: dict[str, Node] = {}
        for message, node in zip(record["nodes"], found):
            if node is None:
                node = self._create(graph, message, last)
                created.append(node)
            names[message["name"]] = node
            self._args.nodes_of_uids[int(message["uid"])] = node
            if own := placed_elsewhere(message):
                self._fields[node] = own
        plan = _Plan(graph_module, self._new_children(graph_module, record), list(names.values()))
        for message, node in zip(record["nodes"], found):
            if node is None:
                self._give_meta(names[message["name"]], message, names)
            was = None if node is None else before[self.exporter.uids[node]]
            if was is None or not _is_untouched(node, was, message, names):
                plan.changes.append(self._change(names[message["name"]], was, message, names))
        kept = set(found)
        plan.erased = [node for node in reversed(list(old.values())) if node not in kept]
        return plan

    def _carry_out(self, plan: _Plan) -> None:
        graph = plan.graph_module.graph
        for path, child in plan.children.items():
            plan.graph_module.add_module(path, child)
        for change in plan.changes:
            change.carry_out()
        for node in plan.erased:
            graph.erase_node(node)
        _order(graph, plan.nodes)

    def _find(self, message: Json, before: Mapping[int, Json], old: Mapping[str, Node]) -> Node | None:
        """Returns the existing node of a message: by uid, or by name if raising control
        dependencies assigned a new uid."""
        if int(message["uid"]) in before:
            return self._nodes[int(message["uid"])]
        node = old.get(message["name"])
        if node is None or node in self._matched:
            return None
        known = before[self.exporter.uids[node]]
        return node if (known["kind"], known["target"]) == (message["kind"], message["target"]) else None

    def _create(self, graph: Graph, message: Json, last: Node | None) -> Node:
        target = self.exporter.named.get(message["target"])
        if last is None:
            return create_node(graph, message, target)
        with graph.inserting_before(last):
            return create_node(graph, message, target)

    def _new_children(self, graph_module: GraphModule, record: Json) -> dict[str, GraphModule]:
        """Returns the subgraphs that the graph names and the module lacks."""
        attributes = [attribute for attribute in record.get("attributes", ()) if "graph" in attribute]
        return {
            attribute["path"]: self._graph_module(attribute["graph"])
            for attribute in attributes
            if "." not in attribute["path"] and not hasattr(graph_module, attribute["path"])
        }

    def _change(self, node: Node, before: Json | None, after: Json, names: Mapping[str, Node]) -> _Change:
        """Plans a node's change from message `before` to `after`. before: None for a new node."""
        args = tuple(self._args.argument(arg, names) for arg in after.get("args", ()))
        kwargs = {item["name"]: self._args.argument(item["arg"], names) for item in after.get("kwargs", ())}
        change = _Change(node, after["name"], node.target, args, kwargs, {}, [])
        if before is None:
            return change
        if before["target"] != after["target"]:
            change.target = self.exporter.named.get(after["target"]) or find(after["target"])
        custom = node.meta.get("custom")
        was, now = marks_of(before, custom), marks_of(after, custom)
        if after.get("phase") == "PHASE_BACKWARD" and "PHASE_MARKER_INFERRED" in after.get("phase_markers", ()):
            now["autograd_backward"] = True
        change.dropped = [key for key in was if key not in now]
        change.meta = {key: value for key, value in now.items() if key not in was or was[key] != value}
        if (told := _custom_of(after)) != _custom_of(before):
            kept = _without_replay(custom)
            if now_custom := kept | (self._args.read(told, names) if told is not None else {}):
                change.meta["custom"] = now_custom
            else:
                change.dropped.append("custom")
        return change

    def _give_meta(self, node: Node, message: Json, names: Mapping[str, Node]) -> None:
        """Sets a new node's metadata: its origin's, with the fields that the pass wrote and its own
        value."""
        origins = [self._args.nodes_of_uids.get(int(origin.get("uid", 0))) for origin in message.get("origins", ())]
        origin = next((found for found in origins if found is not None), None)
        if origin is None:
            give_node_meta(node, message, self._args, names, derives=False)
            return
        meta = {key: value for key, value in origin.meta.items() if key not in TRAINING_KEYS}
        told = _custom_of(message)
        custom = copy.deepcopy(_without_replay(meta.pop("custom", None))) | (self._args.read(told, names) if told is not None else {})
        if custom:
            meta["custom"] = custom
        meta |= marks_of(message, meta.get("custom"))
        node.type = origin.type
        node.meta = meta
        if "val" in meta and self._args.values is not None and "opaque" not in message.get("value", {"opaque": None}):
            meta["val"] = self._args.value(message["value"])


class _KnownArgs(ArgReader):
    """Reads arguments as the objects they were written from."""

    def __init__(
        self,
        exporter: Exporter,
        symbols: SymbolReader,
        values: ValueReader | None,
        graph: Callable[[str], GraphModule],
    ) -> None:
        super().__init__(values, graph)
        self._exporter = exporter
        self._meshes = {record["name"]: mesh for mesh, record in exporter.values.meshes}
        self._symbols = symbols

    def argument(self, arg: Json, names: Mapping[str, Node]) -> object:
        match arg:
            case {"expr": text}:
                return self._symbols.size(text)
            case {"opaque": {"text": text}} if text in self._exporter.objects:
                return self._exporter.objects[text]
            case {"mesh": name} if name in self._meshes:
                return self._meshes[name]
            case {"group": name} if name in self._exporter.named:
                return self._exporter.named[name]
            case {"op": name} if name in self._exporter.named:
                return self._exporter.named[name]
            case {"enum_value": {"type": kind, "name": name}} if f"{kind}.{name}" in self._exporter.named:
                return self._exporter.named[f"{kind}.{name}"]
        return super().argument(arg, names)


def _module_named(modules: dict[str, GraphModule], name: str) -> GraphModule:
    """Returns the GraphModule of that name, which is created if missing."""
    if name not in modules:
        modules[name] = GraphModule(torch.nn.Module(), Graph())
    return modules[name]


def _is_untouched(node: Node, before: Json, after: Json, names: Mapping[str, Node]) -> bool:
    """Returns whether a node is unchanged: both messages are equal, and their names mean the same
    nodes."""
    if any(map(operator.ne, map(before.get, _READ_FIELDS), map(after.get, _READ_FIELDS))):
        return False
    if ("meta" in after or "meta" in before) and _custom_of(after) != _custom_of(before):
        return False
    return all(names.get(source.name) is source for source in node.all_input_nodes)


def _recompile(graph_modules: Sequence[GraphModule]) -> None:
    """Regenerates the code of each module once: GraphModule.recompile includes its direct
    children."""
    whole = [found for found in graph_modules if type(found).recompile is GraphModule.recompile]
    below = {child for found in whole for child in found.children()}
    for graph_module in graph_modules:
        if graph_module not in below:
            graph_module.recompile()


def _fake_mode(exporter: Exporter):
    """Returns the fake mode of new values."""
    if exporter.values.mode is not None:
        return exporter.values.mode
    for _, graph_module, _ in exporter.graphs:
        for node in graph_module.graph.nodes:
            value = node.meta.get("val")
            if isinstance(value, FakeTensor):
                return value.fake_mode
    return None


def _same(a: object, b: object) -> bool:
    """Returns whether two arguments are the same, without adding guards to a ShapeEnv."""
    if a is b:
        return True
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        both_tuples = isinstance(a, tuple) == isinstance(b, tuple)
        return both_tuples and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, slice) and isinstance(b, slice):
        return _same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, torch.SymInt | torch.SymFloat | torch.SymBool):
        return type(a) is type(b) and a.node.expr == b.node.expr
    if isinstance(a, Node) or isinstance(b, Node) or type(a) is not type(b):
        return False
    return repr(a) == repr(b) if isinstance(a, float) else bool(a == b)


def _order(graph: Graph, nodes: Sequence[Node]) -> None:
    """Moves the graph's nodes into this order. Nodes that are in place are not touched."""
    current = graph._root
    for node in nodes:
        if current.next is not node:
            current.append(node)
        current = node
