"""Writes one program once, runs pipelines of the fxopt program on it, and reads the results as
runnable graphs."""

from __future__ import annotations

import copy
import json
import pathlib
import re
from dataclasses import dataclass

import torch
from fxopt import bridge, form, tool
from fxopt.form import Json
from fxopt.reader import Importer
from fxopt.writer import Exporter
from torch import Tensor
from torch.fx import GraphModule

from differential_parts.observe import attributes_of
from differential_parts.programs import Program, aten

NO_REPRODUCER = "--no-reproducer"
# Buckets of sums. The ranks that collectives.py simulates add up one element after the other, in
# the same order.
REORDERING = re.compile(r"\b(reduce-scatter|all-reduce)=")


@dataclass
class Optimized:
    """A pipeline's result: the graph, and for each pass whether it changed something, by its
    report."""

    graph_module: GraphModule
    changed: dict[str, bool]
    recomputed: int


class Optimizer:
    """Pipelines over one program."""

    def __init__(self, program: Program, fxopt: str, source: pathlib.Path) -> None:
        """source: the program as a file."""
        self.program = program
        self.fxopt = fxopt
        self.folder = source.parent
        self.source = source

    @classmethod
    def of(cls, program: Program, fxopt: str, folder: pathlib.Path) -> Optimizer:
        """Writes the program. Raises ExportError if its graph cannot be written."""
        source = folder / "before.json"
        exporter = Exporter(source)
        with form.no_collection():
            module = exporter.module(program.graph_module, **program.told)
            with exporter.large_constants():
                form.write_json(module, source)
        return cls(program, fxopt, source)

    def run(self, passes: str, *, prove: bool = True, stop_after: int | None = None) -> Optimized:
        """Runs a pipeline, or its first passes, and builds the result without metadata. Raises
        FxoptError if fxopt refuses."""
        target = self.folder / "after.json"
        report = self._call(passes, target, prove=prove, stop_after=stop_after)
        return _optimized(runnable(json.loads(target.read_text(encoding="utf-8"))["module"], target), report)

    def apply(self, passes: str) -> Optimized:
        """The same by bridge.apply, on a copy."""
        graph_module = copy_of(self.program.graph_module)
        bridge.apply(graph_module, passes, options=(NO_REPRODUCER, *numerics(passes)), fxopt=self.fxopt, **self.program.told)
        return Optimized(graph_module, {}, 0)

    def write(self, path: pathlib.Path) -> None:
        """Writes the program as a file of fxopt."""
        bridge.save(self.program.graph_module, path, fxopt=self.fxopt, **self.program.told)

    def _call(self, passes: str, target: pathlib.Path, *, prove: bool, stop_after: int | None) -> Json:
        arguments = ["opt", str(self.source), "-o", str(target), "--passes", passes, NO_REPRODUCER, *numerics(passes)]
        arguments += [] if prove else ["--no-prove"]
        if stop_after is not None:
            arguments += ["--stop-after", str(stop_after)]
        return tool.run_fxopt(self.fxopt, arguments, self.folder)["files"][0]


def numerics(passes: str) -> tuple[str, ...]:
    """Options that a pipeline needs so that fxopt runs it."""
    return ("--numerics", "reorders-reductions") if REORDERING.search(passes) else ()


class _Runnable(Importer):
    """A module read without the metadata of nodes that only passes need, such as values."""

    def runnable(self) -> GraphModule:
        by_kind = {graph.get("kind"): graph["name"] for graph in reversed(self.module["graphs"])}
        if "GRAPH_KIND_BACKWARD" in by_kind and "GRAPH_KIND_FORWARD" in by_kind:
            return self._pair(by_kind["GRAPH_KIND_FORWARD"], by_kind["GRAPH_KIND_BACKWARD"])
        if "GRAPH_KIND_INFERENCE" in by_kind:
            return self.graph_module(by_kind["GRAPH_KIND_INFERENCE"])
        return self.graph_module(self.module["graphs"][0]["name"])

    def _pair(self, first: str, second: str) -> GraphModule:
        """Forward, then backward on its saved values, as one graph with the joint graph's calling
        convention. New values of inputs, which forward returns, are written in between, as the
        runtime does, and undone at the end: the joint graph leaves these writes to its caller."""
        forward, backward = self.graph_module(first), self.graph_module(second)
        count = int(self._records[first]["num_forward_outputs"])
        graph, values = torch.fx.Graph(), {}
        returned = graph.graph_copy(forward.graph, values)
        inputs = {node.name: node for node in graph.find_nodes(op="placeholder")}
        written = [
            (inputs[spec["of"]], value)
            for spec, value in zip(self._records[first].get("outputs", ()), returned)
            if spec.get("role") == "OUTPUT_ROLE_MUTATION" and spec.get("of") in inputs and isinstance(value, torch.fx.Node)
        ]
        old = [(node, graph.call_function(aten.clone.default, (node,))) for node, _ in written]
        for pair in written:
            graph.call_function(aten.copy_.default, pair)
        placeholders = backward.graph.find_nodes(op="placeholder")
        bindings = self.module["invocations"][-1].get("bindings", ())
        given = {placeholders[item.get("input", 0)]: returned[item.get("output", 0)] for item in bindings}
        gradients = graph.graph_copy(backward.graph, given)
        for pair in old:
            graph.call_function(aten.copy_.default, pair)
        graph.output([*returned[:count], *gradients])
        root = torch.nn.Module()
        for half in (forward, backward):
            for node in half.graph.find_nodes(op="get_attr"):
                if not _has(root, node.target):
                    _put(root, node.target, _get(half, node.target))
        return GraphModule(root, graph)


def runnable(module: Json, path: pathlib.Path) -> GraphModule:
    """The module of that file as a runnable graph; a forward and a backward graph become one."""
    with form.no_collection():
        return _Runnable(module, path, None).runnable()


def copy_of(graph_module: GraphModule) -> GraphModule:
    """The same graph with its own nodes, metadata and attributes; subgraphs and values are
    shared."""
    graph = copy.deepcopy(graph_module.graph)
    for old, new in zip(graph_module.graph.nodes, graph.nodes):
        new.meta = dict(old.meta)
    root = torch.nn.Module()
    for path, tensor in attributes_of(graph_module).items():
        _put(root, path, copied(tensor))
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module") and not _has(root, node.target):
            _put(root, node.target, _get(graph_module, node.target))
    return GraphModule(root, graph)


def copied(tensor: Tensor) -> Tensor:
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(tensor.detach().clone(), tensor.requires_grad)
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _get(root: torch.nn.Module, path: str) -> object:
    for name in path.split("."):
        root = getattr(root, name)
    return root


def _has(root: torch.nn.Module, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(root, name):
            return False
        root = getattr(root, name)
    return True


def _put(root: torch.nn.Module, path: str, item: object) -> None:
    *folders, name = path.split(".")
    for folder in folders:
        if not hasattr(root, folder):
            root.add_module(folder, torch.nn.Module())
        root = getattr(root, folder)
    if isinstance(item, Tensor) and not isinstance(item, torch.nn.Parameter):
        root.register_buffer(name, item)
    else:
        setattr(root, name, item)


def _optimized(graph_module: GraphModule, report: Json) -> Optimized:
    changed: dict[str, bool] = {}
    for step in report["passes"]:
        name = step["pass"].partition("{")[0]
        changed[name] = changed.get(name, False) or step["changed"]
    recomputed = report["after"]["recomputed"] - report["before"]["recomputed"]
    return Optimized(graph_module, changed, recomputed)
