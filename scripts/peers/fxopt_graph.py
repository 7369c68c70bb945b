"""Graphs that fxopt wrote as torch.fx graphs, and its tags as PyTorch's.

Only what comparisons need: plain tensors and numbers as arguments, one graph, targets that torch.ops or `operator` has.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

import fxopt_json
import fxopt_training
from fxopt_json import Json

_LAYOUTS = {value: name for name, value in fxopt_json.LAYOUTS.items()}
_MEMORY_FORMATS = {value: name for name, value in fxopt_json.MEMORY_FORMATS.items()}
POLICIES = {tag: CheckpointPolicy[name] for name, tag in fxopt_training.TAGS.items()}


def target_of(name: str) -> Callable:
    """aten.mm.default, operator.getitem, higher_order.flex_attention."""
    namespace, _, rest = name.partition(".")
    return operator.attrgetter(rest)(operator if namespace == "operator" else getattr(torch.ops, namespace))


def _lower(value: str, prefix: str) -> str:
    return value.removeprefix(prefix).lower()


def argument(arg: Json, nodes: dict[str, Node]) -> object:
    """The Python value of an argument. ValueError for a kind that comparisons do not need."""
    (kind, value), = arg.items()
    match kind:
        case "node":
            return nodes[value]
        case "none":
            return None
        case "bool_value" | "string":
            return value
        case "int_value":
            return int(value)
        case "float_bits":
            return struct.unpack(">d", int(value, 0).to_bytes(8, "big"))[0]
        case "dtype":
            return getattr(torch, _lower(value, "DTYPE_"))
        case "device":
            return torch.device(value)
        case "layout":
            return getattr(torch, _LAYOUTS[value])
        case "memory_format":
            return getattr(torch, _MEMORY_FORMATS[value])
        case "list":
            return [argument(item, nodes) for item in value.get("items", ())]
        case "tuple":
            return tuple(argument(item, nodes) for item in value.get("items", ()))
        case "ints":
            return [int(item) for item in value.get("values", ())]
        case "int_tuple":
            return tuple(int(item) for item in value.get("values", ()))
    raise ValueError(f"an argument of kind {kind!r}")


def graph_module(main: Json, source: GraphModule) -> GraphModule:
    """The graph that fxopt wrote, `main`, over the placeholders' values and the attributes of `source`, from which it came."""
    given = {node.name: node.meta["val"] for node in source.graph.nodes if node.op == "placeholder"}
    graph, nodes = Graph(), {}
    for record in main["nodes"]:
        name, kind = record["name"], _lower(record["kind"], "NODE_KIND_")
        args = tuple(argument(arg, nodes) for arg in record.get("args", ()))
        kwargs = {entry["name"]: argument(entry["arg"], nodes) for entry in record.get("kwargs", ())}
        target = target_of(record["target"]) if kind == "call_function" else record["target"]
        node = nodes[name] = graph.create_node(kind, target, args, kwargs, name=name)
        if kind == "placeholder":
            node.meta["val"] = given[name]
    return GraphModule(source, graph)
