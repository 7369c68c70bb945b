"""GraphModule -> the JSON form of a module. Nothing is lost but what NOT_CARRIED lists; what is neither carried nor listed
is an error. reader.py is the way back, bridge.py the door.
"""

from __future__ import annotations

import contextlib
import enum
import pathlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.shape_prop import TensorMetadata, _extract_tensor_metadata

from fxopt import form
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

VERSION = "0.1.0"  # the project's, as CMakeLists.txt has it

# What is not written, and why: keys of metadata first, then things by what they are.
NOT_CARRIED = {
    "eager_input_vals": "the values of the node's inputs, which those nodes carry; it keeps live tensors",
    "grapharg": "Dynamo's hold on the caller's live inputs; of no use outside the process that compiles",
    "creation_timestamp": "the clock at which a pass made the node",
}
NOT_CARRIED_THINGS = {
    "the data of a tensor in `val`, and that it is no fake tensor": "a value is what a tensor would be: dtype, sizes,"
    " strides, offset, storage, device",
    "the storages of values in another fake mode than most": "which tensors share a storage is a fact among those of one"
    " FakeTensorMode; make_fx in real mode (its default) records each value in one of its own, on a storage of its own, views"
    " too, so that its graphs have none: fake and symbolic mode tell them",
    "sparse and quantized tensors": "an error where they stand, as what they have besides sizes has no place; apply() takes them"
    " and leaves them alone. For a sparse one make_fx in real mode records None, and that is carried",
    "integers that do not fit in 64 bits with a sign, as arguments": "an error where they stand; in metadata they are carried",
    "that some lists and dicts of a value are plain ones beside immutable ones of torch.fx": "all are read back as immutable",
    "a value's constant (FakeTensor.constant) and memoized items": "the tracer's own cache",
    "classes and functions in nn_module_stack and source_fn_stack that no import finds": "read back as their names, as"
    " torch.export writes them",
    "the certificate of a file that opt wrote": "it speaks of that file's graph, and a loaded one may be changed",
    "attributes of the GraphModule that no node names": "no part of the graph",
    "attributes of nodes that torch.fx.Node does not have, such as _dynamo_source": "bookkeeping of the tracer",
    "settings and sources of the ShapeEnv": "symbols, ranges, hints, guards and run-time assertions are carried; a source"
    " is read back as its text",
    "that a size is a SymInt whose expression is a constant": "read back as the number",
    "that a number without symbols has no hint": "its value becomes its hint",
    "symbols of the ShapeEnv that neither graph nor guards read": "no part of the graph",
    "the state of a torch.Generator": "its device is carried; the caller brings the state. Where there is no such device, an"
    " AbsentGenerator stands for it",
}
# Diagnostic metadata where a class that no import finds is read back as its name.
STACK_KEYS = frozenset({"nn_module_stack", "source_fn_stack", "fwd_nn_module_stack", "fwd_source_fn_stack", "torch_fn"})
# Keys with which attributes of torch.fx objects stand among the metadata of nodes, graphs and modules.
NODE_TYPE = "fx.type"  # Node.type
VALUE_KEY = "fx.value_key"  # the metadata key of the node's value where it is not `val`
VALUE_TYPE = "fx.value_type"  # the class of the node's value where it is one of torch.return_types
IMMUTABLE = "fx.immutable"  # the lists and dicts of the node's value are torch.fx's immutable ones
TENSOR_META = "fx.tensor_meta"  # of a graph: every tensor has the `tensor_meta` that follows from its value
CODEGEN = "fx.codegen"  # of a graph: the code generator's class, and the names of the original arguments
IS_EVAL = "fx.eval"  # of a graph: GraphModule.training is False
ATTRIBUTE_KINDS = "fx.attributes"  # of a graph: tensors that are not persistent buffers, and what they are
SYMBOLS = "fx.symbols"  # of the module: SymbolWriter.extra()
LIBRARIES = "fx.libraries"  # of the module: the Python modules that register operators of its own libraries

INLINE_BYTES = 1024  # of a constant; larger ones go to a .safetensors file
# Of the metadata `custom`: what a partition writes for a second one to read.
REPLAY_KEYS = (
    "ap_must_save",
    "ap_must_save_getitem_indices",
    "ap_must_save_as",
    "ap_must_save_of",
    "ap_must_save_also",
)
MAX_META_DEPTH = 64  # of a metadata tree

KINDS = ("forward_loss_backward", "joint", "forward", "backward", "inference", "optimizer")
_INPUT_ROLES = (
    "parameter buffer input tangent saved_value rng_state optimizer_state seed rng_offset token constant symbol backward_state"
).split()
_OUTPUT_ROLES = "user loss gradient mutation saved_value rng_state token intermediate_base rng_offset".split()

RoleSpec = str | Mapping[str, object]
Roles = Sequence[RoleSpec] | Mapping[str, RoleSpec] | None


class ExportError(ValueError):
    """The graph holds something that the schema cannot say; the message names the node."""


class Provenance:
    """What a file says of a module and torch.fx has no place for; read back with it, and written again with it.

    It stands on the module's graph, which its nodes hold alive anyhow: a graph put in its place or a copy has none.
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
        self.fields = dict(fields)  # of nodes: what passes wrote
        self.storages = dict(storages)

    @staticmethod
    def of(graph_module: GraphModule) -> Provenance | None:
        return getattr(graph_module.graph, "_fxopt_provenance", None)

    def attach(self, graph_module: GraphModule) -> None:
        self._inputs, self._leaves = _inputs_of(graph_module.graph), _output_leaves(graph_module.graph)
        self._names = {node: node.name for node in self.uids}
        graph_module.graph._fxopt_provenance = self

    def convention(self, graph: Graph) -> Json:
        """What the file says of the main graph as a whole and of its outputs, as far as it holds for what the graph has
        now."""
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
        """For the nodes of a graph, the fields that torch.fx has no place for."""
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
        """A role with the positions and names that inputs and outputs have now, less those that are gone."""
        result = dict(spec)
        for key, then, now in (("alias_of_input", self._inputs, inputs), ("alias_of_output", self._leaves, leaves)):
            if key in spec:
                (result[key],) = _places(now, [then[int(spec[key])]])
        if "of" in spec:
            result["of"] = next((node.name for node in inputs if self._names.get(node) == spec["of"]), None)
        return {key: value for key, value in result.items() if value is not None}


def _inputs_of(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def _output_leaves(graph: Graph) -> list[object]:
    """What the graph returns, in the order in which output specifications count."""
    last = next(iter(reversed(graph.nodes)), None)
    return _leaves(last.args[0]) if last is not None and last.op == "output" and last.args else []


def _leaves(arg: object) -> list[object]:
    if isinstance(arg, dict):
        return _leaves(list(arg.values()))
    if isinstance(arg, slice):
        return _leaves([arg.start, arg.stop, arg.step])
    return [leaf for item in arg for leaf in _leaves(item)] if isinstance(arg, list | tuple) else [arg]


def _places(then: Sequence[object], now: Sequence[object]) -> list[int | None]:
    """Where each leaf of `now` stands in `then`; each place is given once."""
    places: dict[object, list[int]] = {}
    for place, leaf in reversed(list(enumerate(then))):
        places.setdefault(leaf if isinstance(leaf, Node) else repr(leaf), []).append(place)
    return [found.pop() if (found := places.get(leaf if isinstance(leaf, Node) else repr(leaf))) else None for leaf in now]


def _without(message: Json, key: str) -> Json:
    return {name: value for name, value in message.items() if name != key}


class Exporter:
    """One module on its way to the JSON form.

    is_lenient: objects that have no form are written as their type, metadata that passes do not read is left out, and
    constants have no data: for a file whose reader still has the GraphModule.
    """

    def __init__(
        self, path: pathlib.Path, *, short_paths: bool = False, drop: Collection[str] = (), is_lenient: bool = False
    ) -> None:
        self.path = path
        self.is_lenient = is_lenient
        self.values = ValueWriter(is_lenient=is_lenient)
        self.graphs: list[tuple[str, GraphModule, str | None]] = []  # name, graph, owner
        self.uids: dict[Node, int] = {}
        self.objects: dict[str, object] = {}  # lenient: what the text of an opaque argument stands for
        self.named: dict[str, object] = {}  # what the names of targets, operators, groups and enumerators stand for
        self._short_paths = short_paths
        self._drop = frozenset(drop) | NOT_CARRIED.keys()
        self._graph_names: dict[int, str] = {}  # by identity
        self._operators: dict[str, torch._ops.OpOverload] = {}
        self._groups: dict[str, Node] = {}  # by name, the first node whose collective uses it
        self._constants: list[Json] = []
        self._constant_names: dict[torch.Tensor, str] = {}
        self._large: dict[str, torch.Tensor] = {}
        self._large_storages: set[int] = set()
        self._provenance: Provenance | None = None
        self._known_fields: dict[Node, Json] = {}  # of the graph at hand
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
        """The whole module. ExportError for what cannot be written."""
        self._provenance = Provenance.of(graph_module)
        known = self._provenance.module if self._provenance is not None else {}
        if self._provenance is not None:
            next_storage = int(known.get("counters", {}).get("next_storage", 0))
            self.values.continue_from(known.get("storages", ()), self._provenance.storages, next_storage)
        # Where guards have fixed every symbol, no value leads to them any more.
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
        assertions = self.values.symbols.assertions(self._text)  # first: they may read symbols that no value does
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
        """Gives every graph that is reached from `graph_module` its name; one reached twice is nobody's own."""
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
        """The values of all nodes, and what their graphs hold."""
        for _, graph_module, _ in self.graphs:
            yield from (node.meta.get(_value_key(node)) for node in graph_module.graph.nodes)
            yield from attributes_of(graph_module).values()

    def _number(self, first_new: int) -> int:
        """Gives nodes their uids: those they were read with, new nodes the next ones. Returns the next uid."""
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
        """Where symbols are defined in the main graph: a placeholder, one of its sizes, or the node that binds them."""
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
        result["nodes"] = [self._node(node, graph_module, derives_meta) for node in graph_module.graph.nodes]
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
        """A tensor behind get_attr. Fake ones have no data."""
        record: Json = {"name": name, "tensor": self.values.tensor(tensor)}
        if not tensor.is_leaf:  # a buffer that was written in place: as a leaf that requires grad it could not be written again
            record["tensor"].pop("requires_grad", None)
        self._constants.append(record)
        if self.is_lenient or isinstance(tensor, torch._subclasses.FakeTensor) or tensor.is_meta:
            return name
        data = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        if data.numel() * data.element_size() <= INLINE_BYTES:
            raw = bytes(data.reshape(-1).view(torch.uint8).tolist())
            record["inline_data"] = form.plain(raw)["bytes_value"]
        else:
            if data.dtype in (torch.complex32, torch.complex128):  # safetensors has no name for them
                data = data.reshape(-1).view(torch.uint8)
            storage = data.untyped_storage()._cdata  # safetensors refuses tensors that share one
            self._large[name] = data.clone() if storage in self._large_storages else data
            self._large_storages.add(storage)
            record |= {"path": self._large_path().name, "key": name}
        return name

    def _large_path(self) -> pathlib.Path:
        return self.path.with_name(self.path.name.removesuffix(".zst")).with_suffix(".safetensors")

    @contextlib.contextmanager
    def large_constants(self) -> Iterator[None]:
        """Writes the constants above INLINE_BYTES: they appear beside the file once what happens inside, the writing of
        the file, is done. If that fails, nothing has changed."""
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
        """Remembers the process group that the call of an operator names."""
        names = (argument.name for argument in node.target._schema.arguments)
        for name, arg in [*zip(names, node.args), *node.kwargs.items()]:
            if name == "group_name" and isinstance(arg, str):
                self._groups.setdefault(arg, node)

    def _used_groups(self, known: Sequence[Json]) -> dict[str, object]:
        """The groups that the collectives use, by the names that they use. ExportError for a name that neither leads to a
        group in this process nor to one of `known`, the groups of the file that the graph was read from."""
        from_file = {record["uid"] for record in known}
        result: dict[str, object] = {}
        for name, node in self._groups.items():
            if (group := find_group(name)) is not None:
                result[name] = group
            elif name not in from_file and not self.is_lenient:
                reason = f"its process group {name!r} is not known in this process, and so are not its ranks"
                hint = "save where the group is: after init_process_group, which takes the backend 'fake' too, and new_group"
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
            if key in node.meta:
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
        """The name under which the object is known from here on: another object's name gets a number."""
        if not self.is_lenient or isinstance(value, torch._ops.OperatorBase):
            return name  # an operator may have several objects: the registry makes a new one after a change
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
        """Remembers an operator whose schema the file shall say: one of another namespace than aten. Whether it is one."""
        is_other = isinstance(operator, torch._ops.OpOverload) and operator.namespace != "aten"
        if is_other:
            self._operators.setdefault(str(operator), operator)
        return is_other

    def _argument(self, node: Node, place: int | str, value: object) -> Json:
        """arg() of the argument at that position or of that name; FormError says which."""
        try:
            return self.arg(value)
        except FormError as error:
            raise FormError(f"{_shown_argument(node, place)}: {error}") from error

    def arg(self, value: object) -> Json:
        """Message Arg of a node's argument. FormError for what no argument can be."""
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
        """The argument for an object that the caller keeps."""
        text = f"#{len(self.objects)}"
        self.objects[text] = value
        return {"opaque": {"type": type_name(value), "text": text}}

    def _leaf(self, value: object) -> Json | None:
        """What arguments and metadata write alike; None for containers and unknown objects."""
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
        """The typed tree of a metadata value. FormError for an object without a typed form."""

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
                raise FormError(f"it refers to node {value.name}, which is in no graph of this module")
            return {"uid_ref": self.uids[value]}
        if isinstance(value, torch.Tensor):
            if not isinstance(value, torch._subclasses.FakeTensor) and not value.is_meta:
                raise FormError("a tensor with data; metadata carries what a tensor would be")
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
            items = sorted(value, key=repr)  # a set's own order changes from run to run
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
        """Kind of the main graph, roles of its placeholders and of its outputs."""
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
        return "; ep.graph_module and ep.module(check_guards=False) do without it"
    return "; trace through the module, so that its operators are nodes" if isinstance(item, torch.nn.Module) else ""


def _value_key(node: Node) -> str:
    """The key of the node's metadata that holds its value."""
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
    """The type to write for a list or tuple that is not a plain one; fx's immutable list counts as plain."""
    plain = type(value) in (list, tuple) or type(value).__module__ == "torch.fx.immutable_collections"
    return "" if plain else _class_name(value)


def has_derivable_meta(value: object) -> bool:
    """Whether `tensor_meta` of this value can be derived without asking a ShapeEnv, which would remember the question."""
    if not isinstance(value, torch.Tensor) or not getattr(value, "_has_symbolic_sizes_strides", False):
        return isinstance(value, torch.Tensor)
    return not any(map(is_symbolic, (*value.shape, *value.stride(), value.storage_offset())))


def _derives_meta(graph_module: GraphModule) -> bool:
    """Whether all nodes with a tensor of plain sizes as value have `tensor_meta`: what follows from the value then need
    not be written."""
    values = [node for node in graph_module.graph.nodes if has_derivable_meta(node.meta.get("val"))]
    return bool(values) and all(type(node.meta.get("tensor_meta")) is TensorMetadata for node in values)


def _follows(meta: Mapping[str, object]) -> bool:
    """Whether `tensor_meta` follows from `val`."""
    value = meta.get("val")
    return has_derivable_meta(value) and meta["tensor_meta"] == _extract_tensor_metadata(value)


def _attribute_kind(graph_module: GraphModule, path: str, item: object) -> str | None:
    """What a tensor behind get_attr is, where it is neither a parameter nor a persistent buffer."""
    if not isinstance(item, torch.Tensor) or isinstance(item, torch.nn.Parameter):
        return None
    folder, _, name = path.rpartition(".")
    owner = graph_module.get_submodule(folder)
    if name not in owner._buffers:
        return "plain"
    return "non_persistent_buffer" if name in owner._non_persistent_buffers_set else None


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


def _kind(main: Json, placeholders: list[Json], outputs: list[Json], told: str | None) -> str | None:
    """outputs: as AOTAutograd describes them; nothing where it does not."""
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
    """Output specifications from AOTAutograd's descriptors; nothing where there are none."""
    last = next(iter(reversed(graph_module.graph.nodes)), None)
    descriptors = last.meta.get("desc") if last is not None else None
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


def attributes_of(graph_module: GraphModule) -> dict[str, object]:
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
