"""GraphModule -> the JSON form of a module.

Nothing is lost except the facts that NOT_CARRIED and NOT_CARRIED_THINGS list. Anything else that
cannot be written is an error. reader.py reads the form back; bridge.py is the public interface.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import pathlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.shape_prop import TensorMetadata, _extract_tensor_metadata

from fxopt import form, triton_kernels
from fxopt.form import FormError, Json
from fxopt.objects import (
    defining_module,
    fields_of,
    holds_immutable,
    is_infinity,
    is_named,
    is_operator,
    is_return_type,
    name_of,
    names_itself,
    type_name,
)
from fxopt.training import input_spec, output_spec, pair_by_seq_nr, training_fields
from fxopt.values import ValueWriter, dtype_name, find_group, group_name, is_symbolic, mode_of_record, process_groups

VERSION = "0.1.0"  # the project's version, as in CMakeLists.txt

# Facts that are not written, with reasons: first by metadata key, then by description.
NOT_CARRIED = {
    "eager_input_vals": "the values of the node's inputs, which those nodes carry; writing it would hold live tensors",
    "grapharg": "Dynamo's reference to the caller's live inputs, useless outside the compiling process",
    "creation_timestamp": "the time at which a pass made the node",
}
NOT_CARRIED_THINGS = {
    "the data of a tensor in `val`, and that it is not a fake tensor": "only its dtype, sizes, strides, offset, storage and"
    " device are written",
    "the storages of values in another fake mode than most": "shared storages are known only within one FakeTensorMode."
    " make_fx in real mode (its default) records each value, views included, in a mode and on a storage of its own, so its"
    " graphs carry no storages; trace in fake or symbolic mode to keep them",
    "sparse and quantized tensors": "an error, because a file can hold only their sizes; apply() accepts them and leaves them"
    " unchanged. make_fx in real mode records None for a sparse tensor; its value is read back as missing",
    "integers that do not fit in 64 bits with a sign, as arguments": "an error; in metadata they are carried",
    "that a value mixes plain lists and dicts with torch.fx's immutable ones": "all are read back as immutable",
    "a value's constant (FakeTensor.constant) and memoized items": "the tracer's own cache",
    "classes and functions in nn_module_stack and source_fn_stack that no import finds": "read back as their names, as"
    " torch.export writes them",
    "the certificate of a file that opt wrote": "it certifies that file's graph, and a loaded graph may change",
    "attributes of the GraphModule that no node names": "not part of the graph",
    "attributes of nodes that torch.fx.Node does not define, such as _dynamo_source": "the tracer's bookkeeping",
    "settings and sources of the ShapeEnv": "symbols, ranges, hints, guards and run-time assertions are carried; a source"
    " is read back as its text",
    "that a size is a SymInt whose expression is a constant": "read back as the number",
    "that a number without symbols has no hint": "its value becomes its hint",
    "symbols of the ShapeEnv that neither the graph nor its guards use": "not part of the graph",
    "the state of a torch.Generator": "its device is carried; the caller must set the state. An AbsentGenerator stands in for"
    " the generator of a missing device",
}
# Diagnostic metadata, in which a class that no import finds is read back as its name.
STACK_KEYS = frozenset({"nn_module_stack", "source_fn_stack", "fwd_nn_module_stack", "fwd_source_fn_stack", "torch_fn"})
# Metadata keys for attributes of torch.fx nodes, graphs and modules.
NODE_TYPE = "fx.type"  # Node.type
VALUE_KEY = "fx.value_key"  # the metadata key of the node's value, unless it is `val`
VALUE_TYPE = "fx.value_type"  # the class of the node's value, if it is one of torch.return_types
IMMUTABLE = "fx.immutable"  # the lists and dicts of the node's value are torch.fx's immutable ones
TENSOR_META = "fx.tensor_meta"  # per graph: every tensor has the `tensor_meta` of its value
CODEGEN = "fx.codegen"  # per graph: the code generator's class, and the original arguments' names
IS_EVAL = "fx.eval"  # per graph: GraphModule.training is False
ATTRIBUTE_KINDS = "fx.attributes"  # per graph: kinds of the tensors that are not persistent buffers
SYMBOLS = "fx.symbols"  # per module: SymbolWriter.extra()
LIBRARIES = "fx.libraries"  # per module: the Python modules that register its custom operators

INLINE_BYTES = 1024  # the largest constant that is stored inline; others go to a .safetensors file
# Keys of the metadata `custom` that one partition writes and the next reads.
REPLAY_KEYS = (
    "ap_must_save",
    "ap_must_save_getitem_indices",
    "ap_must_save_as",
    "ap_must_save_of",
    "ap_must_save_also",
)
MAX_META_DEPTH = 64  # the deepest metadata tree

KINDS = ("forward_loss_backward", "joint", "forward", "backward", "inference", "optimizer")
_INPUT_ROLES = (
    "parameter buffer input tangent saved_value rng_state optimizer_state seed rng_offset token constant symbol backward_state"
).split()
_OUTPUT_ROLES = "user loss gradient mutation saved_value rng_state token intermediate_base rng_offset".split()

RoleSpec = str | Mapping[str, object]
Roles = Sequence[RoleSpec] | Mapping[str, RoleSpec] | None


class ExportError(ValueError):
    """The graph holds an object that the schema cannot represent. The message names the node."""


class Provenance:
    """The facts of a file that torch.fx cannot hold. load() keeps them, and save() writes them
    again.

    It is an attribute of the module's Graph, which the nodes keep alive anyway. A copy of the
    graph, or another graph put in its place, has none.
    """

    def __init__(
        self,
        module: Json,
        uids: Mapping[int, Node],
        fields: Mapping[Node, Json],
        storages: Mapping[int, torch.UntypedStorage],
    ) -> None:
        self.module = {**module, "graphs": [_without(graph, "nodes") for graph in module["graphs"]]}
        self.uids = {node: uid for uid, node in uids.items()}
        self.fields = dict(fields)  # the fields that passes wrote, by node
        self.storages = dict(storages)

    @staticmethod
    def of(graph_module: GraphModule) -> Provenance | None:
        return getattr(graph_module.graph, "_fxopt_provenance", None)

    def attach(self, graph_module: GraphModule) -> None:
        self._inputs, self._leaves = _inputs_of(graph_module.graph), _output_leaves(graph_module.graph)
        self._names = {node: node.name for node in self.uids}
        graph_module.graph._fxopt_provenance = self

    def convention(self, graph: Graph) -> Json:
        """Returns the file's facts about the main graph and its outputs, as far as they still hold
        for the graph's present inputs and outputs."""
        known = self.module["graphs"][0]
        result = {"kind": known["kind"]} if "kind" in known else {}
        inputs, leaves = _inputs_of(graph), _output_leaves(graph)
        places = _places(self._leaves, leaves)
        if "outputs" in known:
            specs = [{} if place is None else known["outputs"][place] for place in places]
            result["outputs"] = [self._moved(spec, inputs, leaves) for spec in specs]
        forward = [place is not None and place < int(known.get("num_forward_outputs", 0)) for place in places]
        if "num_forward_outputs" in known and all(forward[: sum(forward)]):
            result["num_forward_outputs"] = sum(forward)
        if "subclasses" in known and self._inputs == inputs and places == list(range(len(self._leaves))):
            result["subclasses"] = known["subclasses"]
        return result

    def fields_now(self, graph: Graph) -> dict[Node, Json]:
        """Returns the fields that torch.fx cannot hold, by node of the graph."""
        names = {self._names[node]: node.name for node in graph.nodes if node in self._names}
        inputs = _inputs_of(graph)
        result = {node: dict(self.fields[node]) for node in graph.nodes if node in self.fields}
        for fields in result.values():
            if "input" in fields:
                fields["input"] = self._moved(fields["input"], inputs, ())
            if deps := fields.pop("control", ()):
                fields["control"] = [{**dep, "node": names[dep["node"]]} for dep in deps if dep["node"] in names]
        return result

    def _moved(self, spec: Json, inputs: Sequence[Node], leaves: Sequence[object]) -> Json:
        """Returns a role with the present positions and names of inputs and outputs; removed ones
        are left out."""
        result = dict(spec)
        for key, then, now in (("alias_of_input", self._inputs, inputs), ("alias_of_output", self._leaves, leaves)):
            if key in spec:
                (result[key],) = _places(now, [then[int(spec[key])]])
        if "of" in spec:
            result["of"] = next((node.name for node in inputs if self._names.get(node) == spec["of"]), None)
        return {key: value for key, value in result.items() if value is not None}


def in_file_order(graph: Graph) -> list[Node]:
    """Returns the nodes, placeholders first. AOTAutograd adds the placeholders of effect tokens of
    backward after calls."""
    return sorted(graph.nodes, key=lambda node: node.op != "placeholder")


def _inputs_of(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def _output_leaves(graph: Graph) -> list[object]:
    """Returns the leaves of the graph's output, in the order of output specifications."""
    last = next(iter(reversed(graph.nodes)), None)
    return _leaves(last.args[0]) if last is not None and last.op == "output" and last.args else []


def _leaves(arg: object) -> list[object]:
    if isinstance(arg, dict):
        return _leaves(list(arg.values()))
    if isinstance(arg, slice):
        return _leaves([arg.start, arg.stop, arg.step])
    return [leaf for item in arg for leaf in _leaves(item)] if isinstance(arg, list | tuple) else [arg]


def _places(then: Sequence[object], now: Sequence[object]) -> list[int | None]:
    """Returns the position of each leaf of `now` in `then`, each position at most once."""
    places: dict[object, list[int]] = {}
    for place, leaf in reversed(list(enumerate(then))):
        places.setdefault(leaf if isinstance(leaf, Node) else repr(leaf), []).append(place)
    return [found.pop() if (found := places.get(leaf if isinstance(leaf, Node) else repr(leaf))) else None for leaf in now]


def _without(message: Json, key: str) -> Json:
    return {name: value for name, value in message.items() if name != key}


class Exporter:
    """One module on its way to the JSON form.

    is_lenient: for a reader that still has the GraphModule. Objects without a form are written as
        their type, metadata that passes do not read is left out, and constants have no data.
    """

    def __init__(
        self, path: pathlib.Path, *, short_paths: bool = False, drop: Collection[str] = (), is_lenient: bool = False
    ) -> None:
        self.path = path
        self.is_lenient = is_lenient
        self.values = ValueWriter(is_lenient=is_lenient)
        self.graphs: list[tuple[str, GraphModule, str | None]] = []  # name, graph, owner
        self.uids: dict[Node, int] = {}
        self.objects: dict[str, object] = {}  # if lenient: the opaque arguments, by their text
        self.named: dict[str, object] = {}  # targets, operators, groups and enumerators, by name
        self._short_paths = short_paths
        self._drop = frozenset(drop) | NOT_CARRIED.keys()
        self._graph_names: dict[int, str] = {}  # by identity
        self._operators: dict[str, torch._ops.OpOverload] = {}
        self._groups: dict[str, Node] = {}  # the first collective that uses a group, by its name
        self._constants: list[Json] = []
        self._constant_names: dict[torch.Tensor, str] = {}
        self._large: dict[str, torch.Tensor] = {}
        self._large_storages: set[int] = set()
        self._provenance: Provenance | None = None
        self._known_fields: dict[Node, Json] = {}  # for the current graph
        self._sources: dict[str, Json | None] = {}  # by stack trace, which many nodes share

    # ---- the module

    def module(
        self,
        graph_module: GraphModule,
        *,
        name: str = "main",
        kind: str | None = None,
        roles: Roles = None,
        outputs: Sequence[RoleSpec] | None = None,
        num_forward_outputs: int | None = None,
    ) -> Json:
        """Returns the whole module. Raises ExportError for an object that cannot be written."""
        self._provenance = Provenance.of(graph_module)
        known = self._provenance.module if self._provenance is not None else {}
        if self._provenance is not None:
            next_storage = int(known.get("counters", {}).get("next_storage", 0))
            self.values.continue_from(known.get("storages", ()), self._provenance.storages, next_storage)
        # If guards have fixed every symbol, no value leads to the ShapeEnv any more.
        self.values.symbols.note(getattr(graph_module, "shape_env", None))
        self._collect(graph_module, known["graphs"][0]["name"] if known else name, None)
        next_uid = self._number(int(known.get("counters", {}).get("next_uid", 0)))
        self.values.mode = mode_of_record(self._recorded())
        graphs = [self._graph(*entry) for entry in self.graphs]
        self._finish_main(graphs[0], graph_module, kind, roles, outputs)
        if num_forward_outputs is not None:
            graphs[0]["num_forward_outputs"] = num_forward_outputs
        producer = {"tool": "fxopt_torch", "version": VERSION, "framework": "torch"}
        producer["framework_version"] = torch.__version__
        module: Json = {"name": name, "producer": producer} | known | {"graphs": graphs}
        groups, rank = process_groups(self.values.meshes, self._used_groups(known.get("groups", ())))
        storages = self.values.storage_records()
        assertions = self.values.symbols.assertions(self._text)  # first: they may use more symbols
        module["symbols"] = self.values.symbols.records(self._symbol_sites(graphs[0]["name"]))
        module["assertions"] = assertions
        module["storages"] = storages
        if groups or not known:
            listed = {record["uid"] for record in groups}
            groups += [record for record in known.get("groups", ()) if record["uid"] in self._groups.keys() - listed]
            module |= {"groups": groups, "rank": rank}
        module["meshes"] = [record for _, record in self.values.meshes]
        module["op_schemas"] = [_op_schema(name, op) for name, op in self._operators.items()]
        module["constants"] = self._constants
        module["counters"] = known.get("counters", {}) | {
            "next_uid": next_uid,
            "next_storage": self.values.next_storage,
        }
        defined = {name: defining_module(operator) for name, operator in self._operators.items()}
        extra = {SYMBOLS: self.values.symbols.extra(), LIBRARIES: {key: value for key, value in defined.items() if value}}
        if not self.is_lenient:
            others = [entry for entry in known.get("meta", ()) if entry["key"] not in extra]
            module["meta"] = others + [{"key": key, "value": form.plain(value)} for key, value in extra.items() if value]
        return {key: value for key, value in module.items() if value}

    def _collect(self, graph_module: GraphModule, name: str, owner: str | None) -> None:
        """Names every graph reachable from `graph_module`. A graph reached twice has no owner."""
        if id(graph_module) in self._graph_names:
            known = self._graph_names[id(graph_module)]
            self.graphs = [(n, g, None if n == known else o) for n, g, o in self.graphs]
            return
        self._graph_names[id(graph_module)] = name
        self.graphs.append((name, graph_module, owner))
        for path, child in attributes_of(graph_module).items():
            if isinstance(child, GraphModule):
                self._collect(child, f"{name}.{path}", name)

    def _recorded(self) -> Iterator[object]:
        """Yields the values of all nodes, and the attributes of their graphs."""
        for _, graph_module, _ in self.graphs:
            yield from (node.meta.get(_value_key(node)) for node in graph_module.graph.nodes)
            yield from attributes_of(graph_module).values()

    def _number(self, first_new: int) -> int:
        """Assigns uids: nodes from a file keep theirs, new nodes get the next ones. Returns the
        next uid."""
        known = self._provenance.uids if self._provenance is not None else {}
        next_uid = max([first_new, *(uid + 1 for uid in known.values())])
        for _, graph, _ in self.graphs:
            for node in graph.graph.nodes:
                if node not in known:
                    self.uids[node] = next_uid
                    next_uid += 1
                else:
                    self.uids[node] = known[node]
        return next_uid

    def _symbol_sites(self, graph: str) -> dict[str, tuple[str, str, list[str]]]:
        """Returns the definition of each symbol in the main graph as (graph, node, path): a
        placeholder, one of its sizes, or the node that binds it."""
        sites: dict[str, tuple[str, str, list[str]]] = {}
        for node in self.graphs[0][1].graph.nodes:
            for symbol, keys in (node.meta.get("unbacked_bindings") or {}).items():
                sites.setdefault(str(symbol), (graph, node.name, [str(key) for key in keys]))
            value = node.meta.get("val", node.meta.get("example_value"))
            if node.op != "placeholder":
                continue
            if isinstance(value, torch.SymInt):
                sites.setdefault(str(value.node.expr), (graph, node.name, []))
            for i, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if isinstance(size, torch.SymInt):
                    sites.setdefault(str(size.node.expr), (graph, node.name, [".size()", f"[{i}]"]))
        return sites

    # ---- graphs

    def _graph(self, name: str, graph_module: GraphModule, owner: str | None) -> Json:
        result: Json = {"name": name}
        derives_meta = not self.is_lenient and _derives_meta(graph_module)
        self._known_fields = {} if self._provenance is None else self._provenance.fields_now(graph_module.graph)
        result["nodes"] = [self._node(node, graph_module, derives_meta) for node in in_file_order(graph_module.graph)]
        pair_by_seq_nr(result["nodes"])
        if name != self.graphs[0][0]:
            result["kind"] = "GRAPH_KIND_SUBGRAPH"
        attributes = attributes_of(graph_module)
        if attributes:
            result["attributes"] = [self._attribute(name, path, item) for path, item in attributes.items()]
        pytree_info = getattr(graph_module.graph._codegen, "pytree_info", None)
        for field in ("in_spec", "out_spec"):
            if (spec := getattr(pytree_info, field, None)) is not None:
                result[field] = self._tree_spec(name, spec)
        if owner:
            result["owner"] = owner
        result["class_name"] = type(graph_module).__name__
        if not self.is_lenient:
            entries = self._graph_meta(graph_module, attributes) | ({TENSOR_META: True} if derives_meta else {})
            if entries:
                result["meta"] = [self._meta_entry(key, value, f"graph {name!r}") for key, value in entries.items()]
        return result

    def _tree_spec(self, graph: str, spec: object) -> str:
        try:
            return torch.utils._pytree.treespec_dumps(spec)
        except NotImplementedError as error:
            if self.is_lenient:
                return ""
            raise ExportError(f"graph {graph!r}: its structure of arguments cannot be written: {error}") from error

    def _graph_meta(self, graph_module: GraphModule, attributes: Mapping[str, object]) -> dict[str, object]:
        entries = {key: value for key, value in graph_module.meta.items() if key not in self._drop}
        codegen = graph_module.graph._codegen
        if type(codegen) is not torch.fx.graph.CodeGen:
            info = getattr(codegen, "pytree_info", None)
            told: dict[str, object] = {"class": type(codegen).__name__}
            if info is not None:
                told["orig_args"] = list(info.orig_args)
            entries[CODEGEN] = told
        if not graph_module.training:
            entries[IS_EVAL] = True
        if kinds := {path: kind for path, item in attributes.items() if (kind := _attribute_kind(graph_module, path, item))}:
            entries[ATTRIBUTE_KINDS] = kinds
        return entries

    def _attribute(self, graph: str, path: str, item: object) -> Json:
        if isinstance(item, GraphModule):
            return {"path": path, "graph": self._graph_names[id(item)]}
        try:
            if isinstance(item, torch.Tensor):
                if item not in self._constant_names:
                    self._constant_names[item] = self._constant(f"{graph}.{path}", item)
                return {"path": path, "constant": self._constant_names[item]}
            if self.is_lenient:
                return {"path": path, "opaque": {"type": type_name(item)}}
            raise FormError(f"an object of type {type_name(item)} cannot be written{_advice(item)}")
        except FormError as error:
            if self.is_lenient:
                return {"path": path, "opaque": {"type": type_name(item)}}
            raise ExportError(f"graph {graph!r}: attribute {path!r}: {error}") from error

    def _constant(self, name: str, tensor: torch.Tensor) -> str:
        """Records a tensor behind get_attr and returns its name. Fake tensors have no data."""
        record: Json = {"name": name, "tensor": self.values.tensor(tensor)}
        if not tensor.is_leaf:  # a buffer written in place; a leaf that requires grad forbids that
            record["tensor"].pop("requires_grad", None)
        self._constants.append(record)
        if self.is_lenient or isinstance(tensor, torch._subclasses.FakeTensor) or tensor.is_meta:
            return name
        data = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        if data.numel() * data.element_size() <= INLINE_BYTES:
            raw = bytes(data.reshape(-1).view(torch.uint8).tolist())
            record["inline_data"] = form.plain(raw)["bytes_value"]
        else:
            # The safetensors format has no names for these dtypes.
            if data.dtype in (torch.complex32, torch.complex128):
                data = data.reshape(-1).view(torch.uint8)
            storage = data.untyped_storage()._cdata  # safetensors refuses shared storages
            self._large[name] = data.clone() if storage in self._large_storages else data
            self._large_storages.add(storage)
            record |= {"path": self._large_path().name, "key": name}
        return name

    def _large_path(self) -> pathlib.Path:
        return self.path.with_name(self.path.name.removesuffix(".zst")).with_suffix(".safetensors")

    @contextlib.contextmanager
    def large_constants(self) -> Iterator[None]:
        """Writes the constants above INLINE_BYTES beside the file, once the body, which writes the
        file, has succeeded. If the body fails, nothing changes."""
        if not self._large:
            yield
            return
        try:
            from safetensors.torch import save_file
        except ImportError as error:
            names = ", ".join(self._large)
            raise ExportError(f"constants above {INLINE_BYTES} bytes ({names}) need the package safetensors") from error
        target = self._large_path()
        partial = target.with_name(target.name + ".partial")
        try:
            save_file(self._large, partial)
            yield
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    # ---- process groups

    def _note_groups(self, node: Node) -> None:
        """Records the process group that an operator's call names."""
        names = (argument.name for argument in node.target._schema.arguments)
        for name, arg in [*zip(names, node.args), *node.kwargs.items()]:
            if name == "group_name" and isinstance(arg, str):
                self._groups.setdefault(arg, node)

    def _used_groups(self, known: Sequence[Json]) -> dict[str, object]:
        """Returns this process's groups that the collectives use, by the names that they use.

        known: the groups of the file that the graph was read from.

        Raises ExportError for a name that is neither a group of this process nor in `known`.
        """
        from_file = {record["uid"] for record in known}
        result: dict[str, object] = {}
        for name, node in self._groups.items():
            if (group := find_group(name)) is not None:
                result[name] = group
            elif name not in from_file and not self.is_lenient:
                reason = f"its process group {name!r} is not known in this process, so its ranks are unknown"
                hint = "save where the group exists: after init_process_group (the backend 'fake' suffices) and new_group"
                raise ExportError(f"node %{node.name} ({_shown_target(node)}): {reason}; {hint}")
        return result

    # ---- nodes

    def _node(self, node: Node, graph_module: GraphModule, derives_meta: bool) -> Json:
        try:
            result: Json = {"kind": form.NODE_KINDS[node.op], "name": node.name, "target": self._target(node)}
            if args := node.args:
                result["args"] = [self._argument(node, i, arg) for i, arg in enumerate(args)]
            if kwargs := node.kwargs:
                result["kwargs"] = [{"name": name, "arg": self._argument(node, name, arg)} for name, arg in kwargs.items()]
            key = _value_key(node)
            if key in node.meta and not _lacks_value(node, key):
                result["value"] = self._value(node.meta[key])
            result["uid"] = self.uids[node]
            result.update(self._meta_fields(node, key, derives_meta))
            result.update(self._known_fields.get(node, {}))
            return result
        except FormError as error:
            raise ExportError(f"node %{node.name} ({_shown_target(node)}): {error}") from error

    def _target(self, node: Node) -> str:
        if node.op == "call_function":
            if self._note_operator(node.target):
                self._note_groups(node)
            if self.is_lenient:
                return self._noted(name_of(node.target), node.target)
            if not names_itself(node.target):
                raise FormError("no import finds this function again; define it at the top of a module")
        return name_of(node.target)

    def _noted(self, name: str, value: object) -> str:
        """Returns a unique name for the object. A name that another object has gets a number."""
        if not self.is_lenient or isinstance(value, torch._ops.OperatorBase):
            # An operator may have several objects: the registry makes a new one after a change.
            return name
        unique, number = name, 1
        while self.named.setdefault(unique, value) is not value:
            number += 1
            unique = f"{name}#{number}"
        return unique

    def _value(self, value: object) -> Json:
        if isinstance(value, GraphModule):
            name = self._graph_names.get(id(value))
            if name is None:
                raise FormError("its value is a GraphModule that the graph does not hold")
            return {"graph": name}
        return self.values.value(tuple(value) if is_return_type(type(value)) else value)

    def _note_operator(self, operator: object) -> bool:
        """Records an operator whose schema the file must hold: one outside the namespace aten, or one
        of aten that fxopt's table lacks. Returns whether it is outside of aten."""
        if not isinstance(operator, torch._ops.OpOverload):
            return False
        is_other = operator.namespace != "aten"
        if is_other or (str(operator) not in _listed_operators("known_ops.txt") and _is_told_by_schema(operator)):
            self._operators.setdefault(str(operator), operator)
        return is_other

    def _argument(self, node: Node, place: int | str, value: object) -> Json:
        """arg() of the argument at that position or of that name, which its FormError names."""
        try:
            if triton_kernels.is_number(node, place) and not self.is_lenient:
                value = triton_kernels.text_of(place, value)
            return self.arg(value)
        except FormError as error:
            raise FormError(f"{_shown_argument(node, place)}: {error}") from error

    def arg(self, value: object) -> Json:
        """Returns message Arg of a node's argument. Raises FormError for an unsupported type."""
        if isinstance(value, Node):
            return {"node": value.name}
        if self.is_lenient and type(value) is int and not form.is_int64(value):
            return self._opaque(value)
        if (result := self._leaf(value)) is not None:
            return result
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return {"expr": self.values.symbols.of(value)}
        if isinstance(value, list | tuple):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return form.sequence(list(value), self.arg, kind, _sequence_type(value))
        if isinstance(value, dict):
            return form.mapping(value, self.arg)
        if isinstance(value, slice):
            return {"slice": {"items": [self.arg(item) for item in (value.start, value.stop, value.step)]}}
        if self.is_lenient:
            return self._opaque(value)
        raise FormError(f"an argument of type {type_name(value)} cannot be written")

    def _opaque(self, value: object) -> Json:
        """Returns the argument for an object that the caller keeps."""
        text = f"#{len(self.objects)}"
        self.objects[text] = value
        return {"opaque": {"type": type_name(value), "text": text}}

    def _leaf(self, value: object) -> Json | None:
        """Returns the form that arguments and metadata share; None for containers and unknown
        objects."""
        if isinstance(value, enum.Enum):
            return self._enumerator(value)
        if (result := form.scalar(value)) is not None:
            return result
        if isinstance(value, torch.dtype):
            return {"dtype": dtype_name(value)}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.layout):
            return {"layout": form.layout(str(value).removeprefix("torch."))}
        if isinstance(value, torch.memory_format):
            return {"memory_format": form.memory_format(str(value).removeprefix("torch."))}
        if is_operator(value):
            self._note_operator(value)
            return {"op": self._noted(name_of(value), value)}
        if (mesh := self.values.mesh(value)) is not None:
            return {"mesh": mesh}
        if (group := group_name(value)) is not None:
            return {"group": self._noted(group, value)}
        return None

    def _enumerator(self, value: enum.Enum) -> Json:
        self._noted(f"{type_name(value)}.{value.name}", value)
        record: Json = {"type": type_name(value), "name": value.name}
        if type(value.value) is int:
            record["number"] = form.integer(value.value)
        return {"enum_value": record}

    # ---- metadata

    def _meta_fields(self, node: Node, value_key: str, derives_meta: bool) -> Json:
        meta = node.meta
        if not self.is_lenient:
            left_out = {value_key, "tensor_meta"} if derives_meta and _follows(meta) else {value_key}
            meta = {key: value for key, value in meta.items() if key not in self._drop and key not in left_out}
        known = meta
        if (policy := meta.get("recompute")) is not None:
            if not isinstance(policy, torch.utils.checkpoint.CheckpointPolicy):
                raise ExportError(
                    f"node %{node.name}: the metadata 'recompute' is {policy!r} of type {type_name(policy)}; "
                    "a tag is a torch.utils.checkpoint.CheckpointPolicy"
                )
            known = meta | {"recompute": policy.name}
        fields, consumed = training_fields(known)
        if isinstance(stack := meta.get("stack_trace"), str):
            if stack not in self._sources:
                self._sources[stack] = last_frame(self._text(stack))
            if source := self._sources[stack]:
                fields["source"] = source
        if node.op == "placeholder" and meta.get("desc") is not None:
            fields["input"] = input_spec(repr(meta["desc"]))
        if self.is_lenient:
            custom = meta.get("custom")
            if isinstance(custom, dict) and (marks := {key: custom[key] for key in REPLAY_KEYS if key in custom}):
                fields["meta"] = [self._meta_entry("custom", marks, f"node %{node.name}")]
            return fields
        if node.type is not None:
            meta[NODE_TYPE] = node.type
        if value_key != "val":
            meta[VALUE_KEY] = value_key
        if is_return_type(type(node.meta.get(value_key))):
            meta[VALUE_TYPE] = type(node.meta[value_key])
        if holds_immutable(node.meta.get(value_key)):
            meta[IMMUTABLE] = True
        where = f"node %{node.name}"
        if entries := [self._meta_entry(key, meta[key], where) for key in meta if key not in consumed]:
            fields["meta"] = entries
        return fields

    def _meta_entry(self, key: object, value: object, where: str) -> Json:
        if not isinstance(key, str):
            raise ExportError(f"{where}: a metadata key of type {type_name(key)}; keys are strings")
        try:
            return {"key": key, "value": self._tree(value, is_stack=key in STACK_KEYS)}
        except FormError as error:
            hint = f"save(..., drop=[{key!r}]) leaves it out"
            raise ExportError(f"{where}: metadata {key!r}: {error}; {hint}") from error

    def _text(self, value: str) -> str:
        return form.shorten_paths(value) if self._short_paths else value

    def _tree(self, value: object, depth: int = 0, *, is_stack: bool = False) -> Json:
        """Returns the typed tree of a metadata value. Raises FormError for an object that has
        none."""

        def inner(item: object) -> Json:
            return self._tree(item, depth + 1, is_stack=is_stack)

        if depth > MAX_META_DEPTH:
            raise FormError(f"nested more than {MAX_META_DEPTH} deep")
        if type(value) is str:
            return {"string": self._text(value)}
        if type(value) is int and not form.is_int64(value):
            return form.mapping({"decimal": str(value)}, inner, "int")
        if isinstance(value, Node):
            if value not in self.uids:
                raise FormError(f"it refers to node {value.name}, which no graph of this module contains")
            return {"uid_ref": self.uids[value]}
        if isinstance(value, torch.Tensor):
            if not isinstance(value, torch._subclasses.FakeTensor) and not value.is_meta:
                raise FormError("a tensor with data; metadata can hold only fake and meta tensors")
            return {"value": self.values.value(value)}
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return {"value": self.values.value(value)}
        if is_infinity(value):
            return form.mapping({}, inner, type_name(value))
        if isinstance(value, sympy.Basic):
            return {"expr": self.values.symbols.text(value)}
        if (result := self._leaf(value)) is not None:
            return result
        if (result := self._container(value, inner)) is not None:
            return result
        if (named := fields_of(value)) is not None:
            return form.mapping(named, inner, type_name(value))
        if is_named(value):
            if names_itself(value):
                return {"op": name_of(value)}
            if is_stack:
                return {"string": name_of(value)}
            raise FormError(f"{name_of(value)}, which no import finds again")
        raise FormError(f"an object of type {type_name(value)} has no typed form")

    def _container(self, value: object, inner: Any) -> Json | None:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return None
        if isinstance(value, list | tuple):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return form.sequence(list(value), inner, kind, "" if type(value) in (list, tuple) else _class_name(value))
        if isinstance(value, dict):
            if type(value).__name__ == "defaultdict":
                raise FormError("a defaultdict, whose factory cannot be written")
            return form.mapping(value, inner, "" if type(value) is dict else _class_name(value))
        if isinstance(value, set | frozenset):
            items = sorted(value, key=repr)  # a set's order changes from run to run
            return form.sequence(items, inner, "set", "" if type(value) is set else _class_name(value))
        if type(value).__name__ == "OrderedSet":
            return form.sequence(list(value), inner, "set", _class_name(value))
        if isinstance(value, slice):
            return {"slice": {"items": [inner(item) for item in (value.start, value.stop, value.step)]}}
        return None

    # ---- calling convention

    def _finish_main(
        self,
        main: Json,
        graph_module: GraphModule,
        kind: str | None,
        roles: Roles,
        outputs: Sequence[RoleSpec] | None,
    ) -> None:
        """Sets the main graph's kind and the roles of its placeholders and outputs."""
        if self._provenance is not None:
            main |= self._provenance.convention(graph_module.graph)
        placeholders = [node for node in main["nodes"] if node["kind"] == "NODE_KIND_PLACEHOLDER"]
        for node, role in _told(placeholders, roles):
            node["input"] = node.get("input", {}) | _role(role, "INPUT_ROLE_", _INPUT_ROLES)
        leaves = form.leaves(main["nodes"][-1]["args"][0]) if main["nodes"] and main["nodes"][-1].get("args") else []
        described = _described_outputs(graph_module, placeholders, len(leaves))
        graph_kind = main["kind"] if kind is None and "kind" in main else _kind(main, placeholders, described, kind)
        if graph_kind:
            main["kind"] = graph_kind
        if outputs is not None:
            if len(outputs) != len(leaves):
                raise ExportError(f"{len(outputs)} output roles for {len(leaves)} outputs")
            specs = [_role(role, "OUTPUT_ROLE_", _OUTPUT_ROLES) for role in outputs]
        elif "outputs" in main:
            return
        else:
            specs = described
            _find_loss(main, placeholders, leaves, specs)
        if specs:
            main["outputs"] = specs
        if specs and outputs is None:
            forward = [i for i, spec in enumerate(specs) if spec.get("role") and not _is_of_backward(spec)]
            if graph_kind == "GRAPH_KIND_JOINT" and forward:
                main["num_forward_outputs"] = forward[-1] + 1


def _advice(item: object) -> str:
    if type(item).__name__ == "GuardsFn":
        return "; use ep.graph_module or ep.module(check_guards=False), which have none"
    return "; trace through the module, so that its operators become nodes" if isinstance(item, torch.nn.Module) else ""


def _value_key(node: Node) -> str:
    """Returns the metadata key that holds the node's value."""
    return "val" if "val" in node.meta or "example_value" not in node.meta else "example_value"


def _shown_target(node: Node) -> str:
    try:
        return name_of(node.target)
    except FormError:
        return type_name(node.target)


def _shown_argument(node: Node, place: int | str) -> str:
    known = node.target._schema.arguments if isinstance(node.target, torch._ops.OpOverload) else ()
    if isinstance(place, int):
        return f"argument {known[place].name!r}" if place < len(known) else f"args[{place}]"
    return f"argument {place!r}"


def _class_name(value: object) -> str:
    return "torch.Size" if isinstance(value, torch.Size) else type_name(value)


def _sequence_type(value: object) -> str:
    """Returns the type to write for a list or tuple, empty for a plain one. torch.fx's immutable
    list counts as plain."""
    plain = type(value) in (list, tuple) or type(value).__module__ == "torch.fx.immutable_collections"
    return "" if plain else _class_name(value)


def has_derivable_meta(value: object) -> bool:
    """Returns whether the value's `tensor_meta` can be derived without a guard in a ShapeEnv."""
    if not isinstance(value, torch.Tensor) or not getattr(value, "_has_symbolic_sizes_strides", False):
        return isinstance(value, torch.Tensor)
    return not any(map(is_symbolic, (*value.shape, *value.stride(), value.storage_offset())))


def _derives_meta(graph_module: GraphModule) -> bool:
    """Returns whether all nodes whose value is a tensor of plain sizes have `tensor_meta`. The part
    that follows from the value is then not written."""
    values = [node for node in graph_module.graph.nodes if has_derivable_meta(node.meta.get("val"))]
    return bool(values) and all(type(node.meta.get("tensor_meta")) is TensorMetadata for node in values)


def _follows(meta: Mapping[str, object]) -> bool:
    """Returns whether `tensor_meta` follows from `val`."""
    value = meta.get("val")
    return has_derivable_meta(value) and meta["tensor_meta"] == _extract_tensor_metadata(value)


def _attribute_kind(graph_module: GraphModule, path: str, item: object) -> str | None:
    """Returns the kind of a tensor behind get_attr; None for a parameter or persistent buffer."""
    if not isinstance(item, torch.Tensor) or isinstance(item, torch.nn.Parameter):
        return None
    folder, _, name = path.rpartition(".")
    owner = graph_module.get_submodule(folder)
    if name not in owner._buffers:
        return "plain"
    return "non_persistent_buffer" if name in owner._non_persistent_buffers_set else None


def _told(placeholders: list[Json], roles: Roles) -> Iterator[tuple[Json, RoleSpec]]:
    """Yields placeholders with the roles given for them."""
    if roles is None:
        return
    if isinstance(roles, Mapping):
        names = {node["name"]: node for node in placeholders}
        for name, role in roles.items():
            if name not in names:
                raise ExportError(f"a role for {name!r}, which is not a placeholder")
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


def _kind(main: Json, placeholders: list[Json], outputs: list[Json], told: str | None) -> str | None:
    """Returns the main graph's kind, None if unknown.

    outputs: as AOTAutograd's descriptors give them; empty without descriptors.
    """
    if told is not None:
        if told not in KINDS:
            raise ExportError(f"unknown graph kind {told!r}: one of {', '.join(KINDS)}")
        return "GRAPH_KIND_" + told.upper()
    if any(node.get("input", {}).get("role") == "INPUT_ROLE_TANGENT" for node in placeholders):
        described = [spec for spec in outputs if spec.get("role")]
        return "GRAPH_KIND_BACKWARD" if described and all(map(_is_of_backward, described)) else "GRAPH_KIND_JOINT"
    if any(spec.get("role") == "OUTPUT_ROLE_SAVED_VALUE" for spec in outputs):
        return "GRAPH_KIND_FORWARD"
    if any("PHASE_MARKER_AUTOGRAD_BACKWARD" in node.get("phase_markers", ()) for node in main["nodes"]):
        return "GRAPH_KIND_FORWARD_LOSS_BACKWARD"
    return None


def _described_outputs(graph_module: GraphModule, placeholders: list[Json], count: int) -> list[Json]:
    """Returns output specifications from AOTAutograd's descriptors; empty without descriptors."""
    last = next(iter(reversed(graph_module.graph.nodes)), None)
    descriptors = last.meta.get("desc") if last is not None else None
    if not isinstance(descriptors, list | tuple) or len(descriptors) != count:
        return []
    by_descriptor = {node["input"]["desc"]: node["name"] for node in placeholders if "desc" in node.get("input", {})}
    return [{} if desc is None else output_spec(repr(desc), by_descriptor) for desc in descriptors]


def _find_loss(main: Json, placeholders: list[Json], leaves: list[Json], specs: list[Json]) -> None:
    """Marks each output that has a tangent and no dimensions as the loss, guessed."""
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


def attributes_of(graph_module: GraphModule) -> dict[str, object]:
    """Returns the targets of get_attr and call_module nodes, by path in order of first use."""
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


@functools.cache
def _listed_operators(name: str) -> frozenset[str]:
    """Returns the operators of a list that make_op_table.py wrote."""
    lines = (pathlib.Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines if not line.startswith("#"))
    return frozenset(f"{packet}.{overload}" for packet, *overloads in rows for overload in overloads)


def _is_told_by_schema(operator: torch._ops.OpOverload) -> bool:
    """Returns whether the schema shows an effect or a result. Some operators of aten have neither,
    and change their argument."""
    return bool(operator._schema.returns) or operator._schema.is_mutable


def _op_schema(name: str, operator: torch._ops.OpOverload) -> Json:
    schema: Json = {"target": name, "schema": str(operator._schema), "is_mutable": operator._schema.is_mutable}
    if tags := sorted(str(tag).rpartition(".")[2] for tag in operator.tags):
        schema["tags"] = tags
    try:
        effect = torch._higher_order_ops.effects._get_effect(operator)
    except (AttributeError, RuntimeError, ValueError):
        effect = None  # this version of torch records no effects for it
    if effect is not None:
        schema["effectful"] = True
    elif name in _listed_operators("exact_ops.txt"):
        schema["pure"] = True
    return schema


def _lacks_value(node: Node, key: str) -> bool:
    """Returns whether the node's memory is unknown: None is recorded for a tensor, as make_fx in real
    mode does for sparse tensors, or the value is an object that holds tensors, as packed weights do."""
    value, returns = node.meta[key], ()
    if isinstance(node.target, torch._ops.OpOverload):
        returns = node.target._schema.returns
    if value is None:
        return len(returns) == 1 and str(returns[0].type) == "Tensor"
    return isinstance(getattr(value, "real_obj", value), torch.ScriptObject)


def last_frame(stack_trace: str) -> Json | None:
    """Returns message Source of the innermost frame of a printed stack, None if it has no frame."""
    frames = re.findall(r'File "([^"\n]+)", line (\d+), in ([^\n]+)(?:\n[ \t]+([^\n]+))?', stack_trace)
    if not frames:
        return None
    file, line, function, code = frames[-1]
    source = {"file": file, "line": int(line), "function": function.strip(), "code": code.strip()}
    return {key: value for key, value in source.items() if value}
