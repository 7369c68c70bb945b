#!/usr/bin/env python3
"""Writes torch.fx graphs as modules of fxopt: GraphModule -> .pb, .fxg (by the fxopt program) or .json.

    import fxopt_torch
    fxopt_torch.save(graph_module, "step.pb", kind="forward_loss_backward", roles=["parameter", "input"])

    scripts/fxopt_torch.py save MODULE:FUNCTION -o step.pb [--fxopt PROGRAM]

FUNCTION takes nothing and returns a GraphModule, or (GraphModule, keyword arguments of save()). No GPU is needed:
values come from the fake tensors in meta['val'], and their storages from the storages of those.

Metadata: what the schema has a field for becomes that field (tag, phase with its markers, region, module path,
seq_nr, source line, bucket, see training_fields()); every other key is carried as a typed tree in the tracer's order,
objects that have no typed form as their type and text. NOT_CARRIED lists the exceptions.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import importlib.util
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

import fxopt_json as form
from fxopt_json import FormError, Json
from fxopt_training import input_spec, output_spec, training_fields

VERSION = "0"

# Metadata keys that are not written, and why nothing is lost.
NOT_CARRIED = {
    "val": "it is the node's value",
    "tensor_meta": "each of its fields is also in `val`",
    "eager_input_vals": "the values of the node's inputs, which those nodes carry; holds live tensors",
}
INLINE_BYTES = 1024  # of a constant; larger ones go to a .safetensors file
MAX_META_DEPTH = 24  # of a metadata tree; what lies deeper is carried as text

_KINDS = ("forward_loss_backward", "joint", "forward", "backward", "inference", "optimizer")
_INPUT_ROLES = (
    "parameter buffer input tangent saved_value rng_state optimizer_state seed rng_offset token constant symbol"
    " backward_state"
).split()
_OUTPUT_ROLES = "user loss gradient mutation saved_value rng_state token intermediate_base rng_offset".split()

RoleSpec = str | Mapping[str, object]
Roles = Sequence[RoleSpec] | Mapping[str, RoleSpec] | None


class ExportError(ValueError):
    """The graph holds something that the schema cannot say; the message names the node."""


def save(
    graph_module: GraphModule,
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    roles: Roles = None,
    outputs: Sequence[RoleSpec] | None = None,
    num_forward_outputs: int | None = None,
    name: str = "main",
    module_name: str | None = None,
    recipe: str | None = None,
    short_paths: bool = False,
    fxopt: str | None = None,
) -> Json:
    """Writes `graph_module` to `path` and returns the JSON form of the module written.

    kind: forward_loss_backward, joint, forward, backward, inference or optimizer; when absent, joint if a placeholder
        is a tangent, forward_loss_backward if nodes are marked as autograd's backward, else unspecified.
    roles: of the placeholders, in order or by name; each a role such as "parameter", or the fields of the schema's
        InputSpec, {"role": "parameter", "fqn": "layers.0.weight"}. Where absent, AOTAutograd's descriptors decide.
    outputs: of the leaves of the output, likewise: "loss" or {"role": "gradient", "of": placeholder name}.
    name: of the main graph; subgraphs are named <graph>.<attribute>.
    recipe: the command that made the graph, for the record.
    short_paths: cuts what names this machine from file names.
    fxopt: the fxopt program that writes every form but .json (default: $FXOPT, else fxopt on PATH).

    Tensors behind get_attr are written inline up to 1 KiB, larger ones to <path's stem>.safetensors beside `path`,
    which needs the package safetensors. ExportError for what cannot be written, RuntimeError when the fxopt program
    is missing or fails.
    """
    target = pathlib.Path(path)
    exporter = _Exporter(target, short_paths)
    with _disable_current_modes():  # the caller's fake mode would fake the ranks of meshes and the data of constants
        module = exporter.module(graph_module, name, kind, roles, outputs, num_forward_outputs)
    if module_name:
        module["name"] = module_name
    if recipe:
        module["producer"]["recipe"] = recipe
    exporter.write_large_constants()
    form.write_module(module, target, fxopt)
    return module


def target_name(target: object) -> str:
    """The name a target has in files: aten.mm.default, higher_order.flex_attention, operator.getitem."""
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.HigherOrderOperator):
        return "higher_order." + target._name
    if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return str(target)
    module = getattr(target, "__module__", None) or "builtins"
    qualified = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    if qualified is None:
        raise ExportError(f"a target of type {type(target).__name__} has no name")
    return ("operator" if module == "_operator" else module) + "." + qualified


def _is_operator(value: object) -> bool:
    operators = torch._ops.OpOverload | torch._ops.OpOverloadPacket | torch._ops.HigherOrderOperator
    return isinstance(value, operators) or getattr(value, "__module__", None) == "_operator"


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _sequence_type(value: object) -> str:
    """The type to write for a list or tuple that is not a plain one; fx's immutable list counts as plain."""
    plain = type(value) in (list, tuple) or type(value).__module__ == "torch.fx.immutable_collections"
    return "" if plain else "torch.Size" if isinstance(value, torch.Size) else _type_name(value)


def _without_address(text: str) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", text)


class _Values:
    """Fake values as messages, and the tables of storages, symbols and meshes they refer to."""

    def __init__(self) -> None:
        self.symbols = form.SymbolTable()
        self.shape_env: Any = None
        self.storages: list[Json] = []
        self.meshes: list[tuple[object, Json]] = []
        self._storage_ids: dict[int, int] = {}
        self._held: list[object] = []  # keeps storages alive: the address of a freed one could come again

    def dim(self, value: int | torch.SymInt) -> int | str:
        """A number, or the text of an expression."""
        if not isinstance(value, torch.SymInt):
            return int(value)
        expr = value.node.expr
        if expr.is_Integer:
            return int(expr)
        self._note_environment(value.node)
        return str(expr)

    def _note_environment(self, node: Any) -> None:
        if self.shape_env is None:
            self.shape_env = getattr(node, "shape_env", None)

    def symbolic(self, value: torch.SymInt | torch.SymFloat | torch.SymBool) -> str:
        self._note_environment(value.node)
        return self.symbols.expression(str(value.node.expr))

    def storage(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._storage_ids:
            self._held.append(storage)
            self._storage_ids[key] = len(self.storages)
            record: Json = {"id": len(self.storages), "bytes": self.symbols.number(self.dim(storage.nbytes()))}
            record["device"] = str(tensor.device)
            self.storages.append(record)
        return self._storage_ids[key]

    def tensor(self, tensor: torch.Tensor) -> Json:
        result: Json = {"dtype": form.dtype(str(tensor.dtype).removeprefix("torch."))}
        result |= form.dims("sizes", [self.dim(size) for size in tensor.shape], self.symbols)
        if tensor.layout == torch.strided:
            result |= form.dims("strides", [self.dim(stride) for stride in tensor.stride()], self.symbols)
            offset = self.dim(tensor.storage_offset())
            if offset != 0:
                result["offset"] = self.symbols.number(offset)
            result["storage"] = self.storage(tensor)
        else:
            result["layout"] = form.layout(str(tensor.layout).removeprefix("torch."))
        result["device"] = str(tensor.device)
        if tensor.requires_grad:
            result["requires_grad"] = True
        if tensor.is_conj():
            result["conjugate"] = True
        if tensor.is_neg():
            result["negative"] = True
        if not _is_plain_tensor(tensor):
            raise FormError(f"a tensor of type {_type_name(tensor)}: trace the plain tensors inside it")
        return result

    def value(self, value: object) -> Json:
        """Message Value."""
        if value is None:
            return {"none": True}
        if isinstance(value, torch.Tensor):
            return {"tensor": self.tensor(value)}
        for symbolic in (torch.SymInt, torch.SymFloat, torch.SymBool):
            if isinstance(value, symbolic):
                return {"symbolic": {"type": form.SYMBOL_TYPES[symbolic.__name__], "expr": self.symbolic(value)}}
        if isinstance(value, list | tuple):
            items = [self.value(item) for item in value]
            return {"tuple" if isinstance(value, tuple) else "list": {"items": items} if items else {}}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            items = {"keys": list(value), "values": [self.value(item) for item in value.values()]}
            return {"dict": items if value else {}}
        if isinstance(value, bool | int | float | str):
            return {"scalar": form.plain(value)}
        return {"opaque": self.opaque(value)}

    def opaque(self, value: object) -> Json:
        wrapped = getattr(value, "real_obj", value)  # a script object as fake tensors see it
        if (mesh := self.mesh(wrapped)) is not None:
            return {"type": "DeviceMesh", "mesh": mesh}
        if (group := _group_name(wrapped)) is not None:
            return {"type": "ProcessGroup", "group": group}
        return {"type": "torch.Generator" if isinstance(value, torch.Generator) else _type_name(wrapped)}

    def mesh(self, value: object) -> str | None:
        """The name of a device mesh, which enters the table; None for anything else."""
        if type(value).__name__ != "DeviceMesh" or not hasattr(value, "mesh_dim_names"):
            return None
        for known, record in self.meshes:
            if known is value or known == value:
                return str(record["name"])
        grid = value.mesh
        record = {
            "name": f"mesh{len(self.meshes)}",
            "device_type": value.device_type,
            "shape": [int(size) for size in grid.shape],
            "dim_names": list(value.mesh_dim_names or ()),
            "ranks": [int(rank) for rank in grid.flatten().tolist()],
            "coordinate": [int(i) for i in value.get_coordinate() or ()],
            "groups": [_group_name(group) for group in value.get_all_groups()],
        }
        self.meshes.append((value, {key: item for key, item in record.items() if item}))
        return str(record["name"])


def _is_plain_tensor(tensor: torch.Tensor) -> bool:
    names = {"Tensor", "Parameter", "Buffer", "FakeTensor"}
    return type(tensor).__module__.startswith("torch") and type(tensor).__name__ in names


def _group_name(value: object) -> str | None:
    name = getattr(value, "group_name", None)
    return name if isinstance(name, str) and "ProcessGroup" in type(value).__name__ else None


class _Exporter:
    """One module on its way to the JSON form."""

    def __init__(self, path: pathlib.Path, short_paths: bool) -> None:
        self.path = path
        self.short_paths = short_paths
        self.values = _Values()
        self.graphs: list[tuple[str, GraphModule, str | None]] = []  # name, graph, owner
        self.graph_names: dict[int, str] = {}  # by identity
        self.uids: dict[Node, int] = {}
        self.operators: dict[str, torch._ops.OpOverload] = {}
        self.constants: list[Json] = []
        self.large: dict[str, torch.Tensor] = {}

    # ---- the module

    def module(
        self,
        graph_module: GraphModule,
        name: str,
        kind: str | None,
        roles: Roles,
        outputs: Sequence[RoleSpec] | None,
        num_forward_outputs: int | None,
    ) -> Json:
        self.collect(graph_module, name, None)
        for _, graph, _ in self.graphs:
            for node in graph.graph.nodes:
                self.uids[node] = len(self.uids)
        graphs = [self.graph(*entry) for entry in self.graphs]
        self.finish_main(graphs[0], graph_module, kind, roles, outputs)
        if num_forward_outputs is not None:
            graphs[0]["num_forward_outputs"] = num_forward_outputs
        producer = {"tool": "fxopt_torch", "version": VERSION, "framework": "torch"}
        producer["framework_version"] = torch.__version__
        module: Json = {"name": name, "producer": producer, "graphs": graphs}
        groups, rank = process_groups(self.values.meshes)
        module["symbols"] = self.symbols(graphs[0])
        module["assertions"] = self.assertions()
        module["storages"] = self.values.storages
        module["groups"] = groups
        module["meshes"] = [record for _, record in self.values.meshes]
        module["op_schemas"] = [_op_schema(name, op) for name, op in self.operators.items()]
        module["constants"] = self.constants
        module["rank"] = rank
        module["counters"] = {"next_uid": len(self.uids), "next_storage": len(self.values.storages)}
        return {key: value for key, value in module.items() if value}

    def collect(self, graph_module: GraphModule, name: str, owner: str | None) -> None:
        """Gives every graph that is reached from `graph_module` its name; one reached twice is nobody's own."""
        if id(graph_module) in self.graph_names:
            known = self.graph_names[id(graph_module)]
            self.graphs = [(n, g, None if n == known else o) for n, g, o in self.graphs]
            return
        self.graph_names[id(graph_module)] = name
        self.graphs.append((name, graph_module, owner))
        for path, child in _attributes(graph_module).items():
            if isinstance(child, GraphModule):
                self.collect(child, f"{name}.{path}", name)

    def symbols(self, main: Json) -> list[Json]:
        """The symbols that were read, with ranges, hints and definition sites."""
        sites = self.symbol_sites()
        shape_env = self.values.shape_env
        ranges = {str(s): r for s, r in shape_env.var_to_range.items()} if shape_env is not None else {}
        hints = {str(s): v for s, v in shape_env.backed_var_to_val.items()} if shape_env is not None else {}
        sources = {str(s): v for s, v in shape_env.var_to_sources.items()} if shape_env is not None else {}
        for name, record in self.values.symbols.records.items():
            for key, bound in (("min", "lower"), ("max", "upper")):
                limit = getattr(ranges.get(name), bound, None)
                if getattr(limit, "is_Integer", False) and -(2**63) <= int(limit) < 2**63:
                    record[key] = form.integer(int(limit))
            if getattr(hints.get(name), "is_Integer", False):
                record["hint"] = form.integer(int(hints[name]))
            if name in sites:
                node, key_path = sites[name]
                record |= {"graph": main["name"], "node": node}
                if key_path:
                    record["key_path"] = key_path
            if sources.get(name):
                source = sources[name][0].name
                record["source"] = source() if callable(source) else source
        return list(self.values.symbols.records.values())

    def symbol_sites(self) -> dict[str, tuple[str, list[str]]]:
        """Where symbols are defined in the main graph: a placeholder, one of its sizes, or the node that binds them."""
        sites: dict[str, tuple[str, list[str]]] = {}
        for node in self.graphs[0][1].graph.nodes:
            for symbol, keys in (node.meta.get("unbacked_bindings") or {}).items():
                sites.setdefault(str(symbol), (node.name, [str(key) for key in keys]))
            value = node.meta.get("val")
            if node.op != "placeholder":
                continue
            if isinstance(value, torch.SymInt):
                sites.setdefault(str(value.node.expr), (node.name, []))
            for i, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if isinstance(size, torch.SymInt):
                    sites.setdefault(str(size.node.expr), (node.name, [".size()", f"[{i}]"]))
        return sites

    def assertions(self) -> list[Json]:
        """What the trace relied on: guards on backed symbols, run-time assertions on unbacked ones."""
        shape_env = self.values.shape_env
        if shape_env is None:
            return []
        conditions = [(guard.expr, "", "guard") for guard in shape_env.guards]
        for asserts in shape_env.deferred_runtime_asserts.values():
            conditions += [(entry.expr, entry.msg, "runtime_assert") for entry in asserts]
        result = []
        for condition, message, source in conditions:
            if condition.is_Boolean and not condition.free_symbols:
                continue  # true or false whatever the sizes
            record = {"condition": self.values.symbols.expression(str(condition)), "message": message, "source": source}
            result.append({key: value for key, value in record.items() if value})
        return result

    # ---- graphs

    def graph(self, name: str, graph_module: GraphModule, owner: str | None) -> Json:
        result: Json = {"name": name, "nodes": [self.node(node, graph_module) for node in graph_module.graph.nodes]}
        if name != self.graphs[0][0]:
            result["kind"] = "GRAPH_KIND_SUBGRAPH"
        attributes = [self.attribute(name, path, item) for path, item in _attributes(graph_module).items()]
        if attributes:
            result["attributes"] = attributes
        pytree_info = getattr(graph_module.graph._codegen, "pytree_info", None)
        for field in ("in_spec", "out_spec"):
            if (spec := getattr(pytree_info, field, None)) is not None:
                result[field] = torch.utils._pytree.treespec_dumps(spec)
        if owner:
            result["owner"] = owner
        result["class_name"] = type(graph_module).__name__
        return result

    def attribute(self, graph: str, path: str, item: object) -> Json:
        if isinstance(item, GraphModule):
            return {"path": path, "graph": self.graph_names[id(item)]}
        if isinstance(item, torch.Tensor):
            try:
                return {"path": path, "constant": self.constant(f"{graph}.{path}", item)}
            except FormError as error:
                raise ExportError(f"graph {graph!r}: attribute {path!r}: {error}") from error
        return {"path": path, "opaque": {"type": _type_name(item), "text": _without_address(str(item))[:200]}}

    def constant(self, name: str, tensor: torch.Tensor) -> str:
        """A tensor behind get_attr. Fake ones have no data."""
        record: Json = {"name": name, "tensor": self.values.tensor(tensor)}
        self.constants.append(record)
        if isinstance(tensor, torch._subclasses.FakeTensor) or tensor.is_meta:
            return name
        data = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        if data.numel() * data.element_size() <= INLINE_BYTES:
            raw = bytes(data.reshape(-1).view(torch.uint8).tolist())
            record["inline_data"] = form.plain(raw)["bytes_value"]
        else:
            self.large[name] = data
            record |= {"path": self.path.name.split(".")[0] + ".safetensors", "key": name}
        return name

    def write_large_constants(self) -> None:
        if not self.large:
            return
        try:
            from safetensors.torch import save_file
        except ImportError as error:
            names = ", ".join(self.large)
            raise ExportError(f"constants above {INLINE_BYTES} bytes ({names}) need the package safetensors") from error
        save_file(self.large, self.path.with_name(self.path.name.split(".")[0] + ".safetensors"))

    # ---- nodes

    def node(self, node: Node, graph_module: GraphModule) -> Json:
        try:
            result: Json = {"kind": form.NODE_KINDS[node.op], "name": node.name, "target": target_name(node.target)}
            self.note_operator(node.target)
            if node.args:
                result["args"] = [self.arg(arg) for arg in node.args]
            if node.kwargs:
                result["kwargs"] = [{"name": name, "arg": self.arg(arg)} for name, arg in node.kwargs.items()]
            if "val" in node.meta:
                result["value"] = self.node_value(node.meta["val"])
            result["uid"] = self.uids[node]
            return result | self.meta_fields(node)
        except FormError as error:
            raise ExportError(f"node %{node.name} ({target_name(node.target)}): {error}") from error

    def node_value(self, value: object) -> Json:
        if isinstance(value, GraphModule):
            name = self.graph_names.get(id(value))
            return {"graph": name} if name else {"opaque": {"type": _type_name(value)}}
        return self.values.value(value)

    def note_operator(self, operator: object) -> None:
        if isinstance(operator, torch._ops.OpOverload) and operator.namespace != "aten":
            self.operators.setdefault(str(operator), operator)

    def arg(self, value: object) -> Json:
        """Message Arg of a node's argument. FormError for what no argument can be."""
        if isinstance(value, Node):
            return {"node": value.name}
        if (result := self.leaf(value)) is not None:
            return result
        if isinstance(value, list | tuple):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return form.sequence(list(value), self.arg, kind, _sequence_type(value))
        if isinstance(value, dict):
            return form.mapping(value, self.arg)
        if isinstance(value, slice):
            return {"slice": {"items": [self.arg(item) for item in (value.start, value.stop, value.step)]}}
        raise FormError(f"an argument of type {_type_name(value)} cannot be written")

    def leaf(self, value: object) -> Json | None:
        """What arguments and metadata write alike; None for containers and unknown objects."""
        if isinstance(value, enum.Enum):
            return self.enumerator(value)
        if (result := form.scalar(value)) is not None:
            return result
        if isinstance(value, torch.dtype):
            return {"dtype": form.dtype(str(value).removeprefix("torch."))}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.layout):
            return {"layout": form.layout(str(value).removeprefix("torch."))}
        if isinstance(value, torch.memory_format):
            return {"memory_format": form.memory_format(str(value).removeprefix("torch."))}
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return {"expr": self.values.symbolic(value)}
        if _is_operator(value):
            self.note_operator(value)
            return {"op": target_name(value)}
        if (mesh := self.values.mesh(value)) is not None:
            return {"mesh": mesh}
        if (group := _group_name(value)) is not None:
            return {"group": group}
        return None

    def enumerator(self, value: enum.Enum) -> Json:
        record: Json = {"type": _type_name(value), "name": value.name}
        if type(value.value) is int:
            record["number"] = form.integer(value.value)
        return {"enum_value": record}

    # ---- metadata

    def meta_fields(self, node: Node) -> Json:
        meta = {key: value for key, value in node.meta.items() if key not in NOT_CARRIED}
        policy = meta.get("recompute")
        known = meta | ({"recompute": policy.name} if isinstance(policy, enum.Enum) else {})
        fields, consumed = training_fields(known)
        if isinstance(stack := meta.get("stack_trace"), str):
            meta["stack_trace"] = self.text(stack)
            if source := last_frame(meta["stack_trace"]):
                fields["source"] = source
        if node.op == "placeholder" and meta.get("desc") is not None:
            fields["input"] = input_spec(repr(meta["desc"]))
            consumed.add("desc")
        entries = [{"key": key, "value": self.meta_value(value)} for key, value in meta.items() if key not in consumed]
        if entries:
            fields["meta"] = entries
        return fields

    def text(self, value: str) -> str:
        return form.shorten_paths(value) if self.short_paths else value

    def meta_value(self, value: object, depth: int = 0) -> Json:
        """The typed tree of a metadata value. Objects without a typed form: type and text."""
        def inner(item: object) -> Json:
            return self.meta_value(item, depth + 1)

        if isinstance(value, str) and not isinstance(value, enum.Enum):
            return {"string": self.text(value)}
        if isinstance(value, Node) and value in self.uids:
            return {"uid_ref": self.uids[value]}
        if isinstance(value, torch.Tensor) and _is_plain_tensor(value):
            return {"value": self.values.value(value)}
        if (result := self.leaf(value)) is not None:
            return result
        if depth < MAX_META_DEPTH:
            if isinstance(value, list | tuple):
                kind = "tuple" if isinstance(value, tuple) else "list"
                return form.sequence(list(value), inner, kind, _sequence_type(value))
            if isinstance(value, dict):
                plain = type(value) is dict or type(value).__module__ == "torch.fx.immutable_collections"
                return form.mapping(value, inner, "" if plain else _type_name(value))
            if isinstance(value, set | frozenset):
                items = sorted(value, key=repr)  # a set's own order changes from run to run
                return form.sequence(items, inner, "set", "" if type(value) is set else _type_name(value))
            if type(value).__name__ == "OrderedSet":
                return form.sequence(list(value), inner, "set", _type_name(value))
            if isinstance(value, slice):
                return {"slice": {"items": [inner(item) for item in (value.start, value.stop, value.step)]}}
            if isinstance(value, torch.fx.traceback.NodeSource):
                return form.mapping(value.to_dict(), inner, _type_name(value))
            if type(value).__module__.startswith("sympy.") and getattr(value, "free_symbols", None):
                return {"expr": self.values.symbols.expression(str(value))}
        named = isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__"))
        text = target_name(value) if named else _without_address(str(value))
        return {"opaque": {"type": _type_name(value), "text": self.text(text)[:400]}}

    # ---- calling convention

    def finish_main(
        self,
        main: Json,
        graph_module: GraphModule,
        kind: str | None,
        roles: Roles,
        outputs: Sequence[RoleSpec] | None,
    ) -> None:
        """Kind of the main graph, roles of its placeholders and of its outputs."""
        placeholders = [node for node in main["nodes"] if node["kind"] == "NODE_KIND_PLACEHOLDER"]
        for node, role in _told(placeholders, roles):
            node["input"] = node.get("input", {}) | _role(role, "INPUT_ROLE_", _INPUT_ROLES)
        graph_kind = _kind(main, placeholders, kind)
        if graph_kind:
            main["kind"] = graph_kind
        leaves = form.leaves(main["nodes"][-1]["args"][0])
        if outputs is not None:
            if len(outputs) != len(leaves):
                raise ExportError(f"{len(outputs)} output roles for {len(leaves)} outputs")
            specs = [_role(role, "OUTPUT_ROLE_", _OUTPUT_ROLES) for role in outputs]
        else:
            specs = _described_outputs(graph_module, placeholders, len(leaves))
            _find_loss(main, placeholders, leaves, specs)
        if specs:
            main["outputs"] = specs
        if specs and outputs is None:
            forward = [i for i, spec in enumerate(specs) if spec.get("role") and not _is_of_backward(spec)]
            if graph_kind == "GRAPH_KIND_JOINT" and forward:
                main["num_forward_outputs"] = forward[-1] + 1
            _drop_meta(main["nodes"][-1], "desc")  # each output has its own now


def _told(placeholders: list[Json], roles: Roles) -> Iterator[tuple[Json, RoleSpec]]:
    """Placeholders with the roles given for them."""
    if roles is None:
        return
    if isinstance(roles, Mapping):
        names = {node["name"]: node for node in placeholders}
        for name, role in roles.items():
            if name not in names:
                raise ExportError(f"a role for {name!r}, which is no placeholder")
            yield names[name], role
        return
    if len(roles) != len(placeholders):
        raise ExportError(f"{len(roles)} roles for {len(placeholders)} placeholders")
    yield from zip(placeholders, roles)


def _role(role: RoleSpec, prefix: str, known: Sequence[str]) -> Json:
    spec: Json = {"role": role} if isinstance(role, str) else dict(role)
    if "role" in spec:
        if spec["role"] not in known:
            raise ExportError(f"unknown role {spec['role']!r}: one of {', '.join(known)}")
        spec["role"] = prefix + str(spec["role"]).upper()
    return spec


def _kind(main: Json, placeholders: list[Json], told: str | None) -> str | None:
    if told is not None:
        if told not in _KINDS:
            raise ExportError(f"unknown graph kind {told!r}: one of {', '.join(_KINDS)}")
        return "GRAPH_KIND_" + told.upper()
    if any(node.get("input", {}).get("role") == "INPUT_ROLE_TANGENT" for node in placeholders):
        return "GRAPH_KIND_JOINT"
    if any("PHASE_MARKER_AUTOGRAD_BACKWARD" in node.get("phase_markers", ()) for node in main["nodes"]):
        return "GRAPH_KIND_FORWARD_LOSS_BACKWARD"
    return None


def _described_outputs(graph_module: GraphModule, placeholders: list[Json], count: int) -> list[Json]:
    """Output specifications from AOTAutograd's descriptors; nothing where there are none."""
    descriptors = next(iter(reversed(graph_module.graph.nodes))).meta.get("desc")
    if not isinstance(descriptors, list | tuple) or len(descriptors) != count:
        return []
    by_descriptor = {node["input"]["desc"]: node["name"] for node in placeholders if "desc" in node.get("input", {})}
    return [{} if desc is None else output_spec(repr(desc), by_descriptor) for desc in descriptors]


def _find_loss(main: Json, placeholders: list[Json], leaves: list[Json], specs: list[Json]) -> None:
    """Calls an output with a tangent and no dimensions the loss: a training step without another loss has this one."""
    tangents = {str(node.get("input", {}).get("desc")) for node in placeholders}
    values = {node["name"]: node.get("value", {}) for node in main["nodes"]}
    for leaf, spec in zip(leaves, specs):
        tensor = values.get(leaf.get("node"), {}).get("tensor")
        has_tangent = f"TangentAOTInput(output={spec.get('desc')})" in tangents
        if has_tangent and tensor is not None and "sizes" not in tensor:
            spec |= {"role": "OUTPUT_ROLE_LOSS", "guessed": True}


def _is_of_backward(spec: Json) -> bool:
    of_backward = ("Backward", "PhiloxUpdatedBackward")
    return spec["role"] == "OUTPUT_ROLE_GRADIENT" or str(spec.get("desc", "")).startswith(of_backward)


def _drop_meta(node: Json, key: str) -> None:
    node["meta"] = [entry for entry in node.get("meta", ()) if entry["key"] != key]
    if not node["meta"]:
        del node["meta"]


def _attributes(graph_module: GraphModule) -> dict[str, object]:
    """What the graph's get_attr nodes and called modules name, in order of first use."""
    result: dict[str, object] = {}
    for node in graph_module.graph.nodes:
        if node.op in ("get_attr", "call_module") and node.target not in result:
            item: object = graph_module
            for part in node.target.split("."):
                if not hasattr(item, part):
                    raise ExportError(f"node %{node.name}: the module has no attribute {node.target!r}")
                item = getattr(item, part)
            result[node.target] = item
    return result


def _op_schema(name: str, operator: torch._ops.OpOverload) -> Json:
    schema: Json = {"target": name, "schema": str(operator._schema), "is_mutable": operator._schema.is_mutable}
    if tags := sorted(str(tag).rpartition(".")[2] for tag in operator.tags):
        schema["tags"] = tags
    try:
        effect = torch._higher_order_ops.effects._get_effect(operator)
    except (AttributeError, RuntimeError, ValueError):
        return schema  # this version of torch keeps no register of effects for it
    if effect is not None:
        schema["effectful"] = True
    return schema


def last_frame(stack_trace: str) -> Json | None:
    """Message Source of the innermost frame of a printed stack."""
    frames = re.findall(r'File "([^"\n]+)", line (\d+), in ([^\n]+)(?:\n[ \t]+([^\n]+))?', stack_trace)
    if not frames:
        return None
    file, line, function, code = frames[-1]
    source = {"file": file, "line": int(line), "function": function.strip(), "code": code.strip()}
    return {key: value for key, value in source.items() if value}


def process_groups(meshes: Sequence[tuple[object, Json]]) -> tuple[list[Json], Json]:
    """The process groups that this process knows, with the mesh dimensions they serve, and the rank."""
    dist = torch.distributed
    if not dist.is_available() or not dist.is_initialized():
        return [], {}
    world = dist.distributed_c10d._world
    groups = []
    for group in world.pg_map:
        record = {
            "uid": world.pg_names[group],
            "ranks": [int(rank) for rank in dist.get_process_group_ranks(group)],
            "description": group.group_desc,
            "backend": dist.get_backend(group),
        }
        for _, mesh in meshes:
            served = [dim for dim, uid in enumerate(mesh.get("groups", ())) if uid == record["uid"]]
            if served and "mesh" not in record:
                names = mesh.get("dim_names", ())
                record["mesh"] = mesh["name"]
                record["mesh_dims"] = [names[dim] if dim < len(names) else str(dim) for dim in served]
        groups.append({key: value for key, value in record.items() if value})
    return groups, {"rank": dist.get_rank(), "world_size": dist.get_world_size()}


# ---- command


def load_function(text: str) -> Any:
    """MODULE:FUNCTION, where MODULE is a module's name or a .py file."""
    module_name, _, function_name = text.partition(":")
    if not module_name or not function_name:
        raise argparse.ArgumentTypeError(f"{text!r} is not MODULE:FUNCTION")
    try:
        if module_name.endswith(".py"):
            spec = importlib.util.spec_from_file_location(pathlib.Path(module_name).stem, module_name)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(module_name)
    except (ImportError, OSError) as error:
        raise argparse.ArgumentTypeError(f"cannot import {module_name}: {error}") from error
    if not callable(function := getattr(module, function_name, None)):
        raise argparse.ArgumentTypeError(f"{module_name} has no function {function_name}")
    return function


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Writes torch.fx graphs as modules of fxopt.")
    commands = parser.add_subparsers(dest="command", required=True)
    saving = commands.add_parser("save", help="write the GraphModule that a Python function returns")
    saving.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        type=load_function,
        help="MODULE is a name or a .py file; FUNCTION() returns a GraphModule or (GraphModule, arguments of save)",
    )
    saving.add_argument("-o", "--output", required=True, metavar="FILE", help="a .pb, .fxg or .json file")
    saving.add_argument("--kind", choices=_KINDS, help="of the graph, when the function does not say")
    saving.add_argument("--short-paths", action="store_true", help="cut what names this machine from file names")
    saving.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    options = parser.parse_args(arguments)

    result = options.function()
    graph_module, told = result if isinstance(result, tuple) else (result, {})
    if not isinstance(graph_module, GraphModule):
        parser.error(f"the function returned {type(graph_module).__name__}, not a GraphModule")
    told = {"kind": options.kind, "short_paths": options.short_paths} | told
    try:
        module = save(graph_module, options.output, fxopt=options.fxopt, **told)
    except (ExportError, OSError, RuntimeError) as error:
        print(f"fxopt_torch: {error}", file=sys.stderr)
        return 1
    nodes = sum(len(graph["nodes"]) for graph in module["graphs"])
    print(f"{options.output}: {len(module['graphs'])} graphs, {nodes} nodes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
