"""The JSON form of a module, as writer.py writes it -> GraphModule, in any process."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import pathlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.node import map_aggregate
from torch.fx.passes.shape_prop import _extract_tensor_metadata

from fxopt import form, triton_kernels, writer
from fxopt.form import FormError, Json
from fxopt.objects import build, enumerator, find, is_return_type, require
from fxopt.symbols import SymbolReader
from fxopt.training import training_meta
from fxopt.values import ValueReader, dtype_of, find_group
from fxopt.writer import Provenance

_OPS = {kind: op for op, kind in form.NODE_KINDS.items()}
_LAYOUTS = {layout: name for name, layout in form.LAYOUTS.items()}
_MEMORY_FORMATS = {memory_format: name for name, memory_format in form.MEMORY_FORMATS.items()}
_CODEGENS = {kind.__name__: kind for kind in vars(torch.fx.graph).values() if isinstance(kind, type)}
# Fields of a node that torch.fx can hold. The others are kept in the Provenance.
_PLACED = frozenset(
    "kind name target args kwargs value uid phase phase_markers tag region module_path seq_nr source bucket meta".split()
)


# Errors that torch raises for an unverified file (.json) that describes no valid graph.
_DAMAGED = (ArithmeticError, AttributeError, LookupError, RuntimeError, SyntaxError, TypeError, ValueError)


class LoadError(ValueError):
    """This process cannot build an object of the file. The message names graph and node."""


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """Turns an error of the body into a LoadError with the place `where`."""
    try:
        yield
    except LoadError:
        raise
    except FormError as error:
        raise LoadError(f"{where}: {error}") from error
    except _DAMAGED as error:
        reason = f"{type(error).__name__}: {error}"
        hint = "`fxopt verify` checks it"
        raise LoadError(f"{where}: the file describes no valid graph ({reason}); {hint}") from error


class ArgReader:
    """Arguments and metadata trees as Python objects."""

    def __init__(self, values: ValueReader, graph: Callable[[str], object]) -> None:
        self.values = values
        self.graph = graph
        self.nodes_of_uids: dict[int, Node] = {}

    def value(self, message: Json) -> object:
        """Message Value."""
        return self.values.value(message, self.graph, lambda scalar: self.read(scalar, {}))

    def read(self, arg: Json, names: Mapping[str, Node], *, is_stack: bool = False) -> Any:
        """Reads message Arg.

        names: the graph's nodes.
        is_stack: an operator, class or function that does not exist here is read as its name.

        Raises FormError for an object that cannot be built here.
        """

        def inner(item: Json) -> Any:
            return self.read(item, names, is_stack=is_stack)

        match arg:
            case {"none": _}:
                return None
            case {"ellipsis": _}:
                return Ellipsis
            case {"bool_value": value} | {"string": value}:
                return value
            case {"int_value": value}:
                return int(value)
            case {"float_bits": bits}:
                return _float(bits)
            case {"complex_value": parts}:
                return complex(_float(parts.get("real_bits", "0")), _float(parts.get("imag_bits", "0")))
            case {"bytes_value": data}:
                return base64.b64decode(data)
            case {"node": name}:
                if name not in names:
                    raise FormError(f"it reads %{name}, which is not a node of this graph")
                return names[name]
            case {"uid_ref": uid}:
                return self.nodes_of_uids[int(uid)]
            case {"ints": values}:
                return [int(value) for value in values.get("values", ())]
            case {"int_tuple": values}:
                return tuple(int(value) for value in values.get("values", ()))
            case {"list": items} | {"tuple": items} | {"set": items}:
                return _sequence(next(iter(arg)), [inner(item) for item in items.get("items", ())], items.get("type"))
            case {"slice": items}:
                return slice(*map(inner, items["items"]))
            case {"dict": items}:
                pairs = {inner(item["key"]): inner(item["value"]) for item in items.get("items", ())}
                return _mapping(pairs, items.get("type"))
            case {"op": name}:
                return _named(name, is_stack)
        return self._leaf(arg)

    def _leaf(self, arg: Json) -> object:
        match arg:
            case {"expr": text}:
                return self.values.symbols.expr(text)
            case {"value": value}:
                return self.value(value)
            case {"dtype": name}:
                return dtype_of(name)
            case {"device": name}:
                return torch.device(name)
            case {"layout": name}:
                return getattr(torch, _LAYOUTS[name])
            case {"memory_format": name}:
                return getattr(torch, _MEMORY_FORMATS[name])
            case {"enum_value": value}:
                return enumerator(value["type"], value["name"])
            case {"graph": name}:
                return self.graph(name)
            case {"mesh": name}:
                return self.values.mesh(name)
            case {"group": name}:
                return torch.distributed.distributed_c10d._resolve_process_group(name)
            case {"opaque": opaque}:
                raise FormError(f"an object of type {opaque.get('type')}; the file holds only its text")
        raise FormError(f"an argument of unknown kind: {', '.join(arg)}")

    def argument(self, arg: Json, names: Mapping[str, Node]) -> Any:
        """Like read(), for a node's argument: an expression is read as a symbolic number."""
        match arg:
            case {"expr": text}:
                return self.values.symbols.size(text)
            case {"list": items} | {"tuple": items}:
                values = [self.argument(item, names) for item in items.get("items", ())]
                return _sequence(next(iter(arg)), values, items.get("type"))
            case {"dict": items}:
                pairs = items.get("items", ())
                return {self.argument(pair["key"], names): self.argument(pair["value"], names) for pair in pairs}
            case {"slice": items}:
                return slice(*(self.argument(item, names) for item in items["items"]))
        return self.read(arg, names)


def _float(bits: str | int) -> float:
    return struct.unpack(">d", int(str(bits), 0).to_bytes(8, "big"))[0]


def _named(name: str, is_stack: bool) -> object:
    try:
        return find(name)
    except FormError:
        if is_stack:
            return name
        raise


def _sequence(kind: str, items: list, type_name: str | None) -> object:
    plain = {"list": list, "tuple": tuple, "set": set}[kind]
    if not type_name:
        return plain(items)
    found = torch.Size if type_name == "torch.Size" else find(type_name)
    if not (isinstance(found, type) and (issubclass(found, plain | frozenset) or found.__name__ == "OrderedSet")):
        raise FormError(f"{type_name!r} is not a {kind} class")
    return found(items)


def _mapping(items: dict, type_name: str | None) -> object:
    if not type_name:
        return items
    if type_name == "int":  # beyond 64 bits
        return int(items["decimal"])
    found = find(type_name)
    if isinstance(found, type) and issubclass(found, dict):
        return found(items)
    return build(type_name, items)


class Importer:
    """One module on its way from the JSON form to a GraphModule."""

    def __init__(self, module: Json, path: pathlib.Path, mode: FakeTensorMode | None) -> None:
        self.module = module
        self.path = path
        meta = {entry["key"]: entry["value"] for entry in module.get("meta", ())}
        env = mode.shape_env if mode is not None and mode.shape_env is not None else ShapeEnv()
        self.mode = mode or FakeTensorMode(allow_non_fake_inputs=True, shape_env=env)
        extra, self._libraries = (
            ArgReader(None, None).read(meta[key], {}) if key in meta else {} for key in (writer.SYMBOLS, writer.LIBRARIES)
        )
        self.symbols = SymbolReader(module.get("symbols", ()), extra, env)
        self.values = ValueReader(module, self.symbols, self.mode)
        self.args = ArgReader(self.values, self.graph_module)
        self._records = {record["name"]: record for record in module["graphs"]}
        self._constants = {record["name"]: record for record in module.get("constants", ())}
        self._tensors: dict[str, torch.Tensor] = {}
        self._built: dict[str, GraphModule] = {}
        self._nodes: dict[str, dict[str, Node]] = {}
        self._fields: dict[Node, Json] = {}

    def load(self) -> GraphModule:
        """Returns the main graph's GraphModule. Raises LoadError for an object that cannot be built
        here."""
        for operator, module in self._libraries.items():
            with located(f"operator {operator!r}"):
                require(operator, module)
        main = self.graph_module(self.module["graphs"][0]["name"])
        for name in self._built:
            self._give_meta(name)
        self.symbols.assertions(self.module.get("assertions", ()))
        storages = self.values.held | self.values.storages
        Provenance(self.module, self.args.nodes_of_uids, self._fields, storages).attach(main)
        return main

    def graph_module(self, name: str) -> GraphModule:
        """Returns the GraphModule of the graph of that name. load() adds its metadata later."""
        if name not in self._built:
            record = self._records[name]
            attributes = self._attributes(record)
            graph, names = self._graph(record)
            result = GraphModule(_root(attributes), graph, record.get("class_name", "GraphModule"))
            self._built[name], self._nodes[name] = result, names
        return self._built[name]

    def _attributes(self, record: Json) -> dict[str, object]:
        result: dict[str, object] = {}
        for attribute in record.get("attributes", ()):
            if "graph" in attribute:
                result[attribute["path"]] = self.graph_module(attribute["graph"])
            elif "constant" in attribute:
                with located(f"graph {record['name']!r}: attribute {attribute['path']!r}"):
                    result[attribute["path"]] = self._constant(attribute["constant"])
            else:
                kind = attribute.get("opaque", {}).get("type", "unknown")
                where = f"graph {record['name']!r}: attribute {attribute['path']!r}"
                raise LoadError(f"{where}: the file does not hold this object of type {kind}")
        return result

    def _constant(self, name: str) -> torch.Tensor:
        if name not in self._tensors:
            if name not in self._constants:
                raise FormError(f"no constant {name!r}")
            self._tensors[name] = self._read_constant(self._constants[name])
        return self._tensors[name]

    def _read_constant(self, record: Json) -> torch.Tensor:
        message = record["tensor"]
        if "inline_data" in record:
            raw = bytearray(base64.b64decode(record["inline_data"]))
            data = torch.frombuffer(raw, dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)
        elif "path" in record:
            data = self._large_constant(record)
        else:
            data = None
        return self.values.constant(message, data)

    def _large_constant(self, record: Json) -> torch.Tensor:
        try:
            from safetensors import safe_open
        except ImportError as error:
            raise FormError("its data is in a .safetensors file, which needs the package safetensors") from error
        path = self.path.with_name(record["path"])
        if not path.is_file():
            raise FormError(f"its data should be in {path}, which is missing")
        with safe_open(path, framework="pt") as file:
            return file.get_tensor(record["key"]).reshape(-1)

    def _graph(self, record: Json) -> tuple[Graph, dict[str, Node]]:
        graph = Graph()
        names: dict[str, Node] = {}
        for message in record["nodes"]:
            with located(f"graph {record['name']!r}, node %{message['name']}"):
                _check_names(message)
                node = create_node(graph, message)
            names[message["name"]] = node
            if "uid" in message:
                self.args.nodes_of_uids[int(message["uid"])] = node
            if own := placed_elsewhere(message):
                self._fields[node] = own
        for message in record["nodes"]:
            with located(f"graph {record['name']!r}, node %{message['name']}"):
                self._give_arguments(names[message["name"]], message, names)
        graph.set_codegen(_codegen(record, self.args))
        return graph, names

    def _give_arguments(self, node: Node, message: Json, names: Mapping[str, Node]) -> None:
        node.args = tuple(self.args.argument(arg, names) for arg in message.get("args", ()))
        if "kwargs" in message:
            kwargs = {item["name"]: self.args.argument(item["arg"], names) for item in message["kwargs"]}
            node.kwargs = {
                name: triton_kernels.number_of(name, value) if triton_kernels.is_number(node, name) else value
                for name, value in kwargs.items()
            }

    def _give_meta(self, name: str) -> None:
        record, names = self._records[name], self._nodes[name]
        graph_module = self._built[name]
        entries = {entry["key"]: self.args.read(entry["value"], names) for entry in record.get("meta", ())}
        for path, kind in entries.pop(writer.ATTRIBUTE_KINDS, {}).items():
            _set_kind(graph_module, path, kind)
        if entries.pop(writer.IS_EVAL, False):
            graph_module.eval()
        entries.pop(writer.CODEGEN, None)
        derives = entries.pop(writer.TENSOR_META, False)
        graph_module.meta.update(entries)
        graph_module.shape_env = self.symbols.env if self.symbols.symbols else graph_module.shape_env
        for message in record["nodes"]:
            with located(f"graph {name!r}, node %{message['name']}"):
                give_node_meta(names[message["name"]], message, self.args, names, derives=derives)
        if any(node.type is not None for node in graph_module.graph.nodes):
            graph_module.recompile()


def _check_names(message: Json) -> None:
    """Raises FormError for a node whose names are not Python names: torch.fx generates and runs
    code that contains them."""
    names = [message["name"], *(item["name"] for item in message.get("kwargs", ()))]
    kind, target = message["kind"], str(message.get("target", ""))
    if kind == "NODE_KIND_PLACEHOLDER":
        names.append(target.removeprefix("*").removeprefix("*"))
    elif kind == "NODE_KIND_CALL_METHOD":
        names.append(target)
    elif kind in ("NODE_KIND_GET_ATTR", "NODE_KIND_CALL_MODULE"):
        if not target.isprintable() or '"' in target or "\\" in target:
            raise FormError(f"{target!r} is not an attribute path")
    _check_identifiers(names)


def _check_identifiers(names: Iterable[str]) -> None:
    for name in names:
        if not name.isidentifier():
            raise FormError(f"{name!r} is not a Python name")


def placed_elsewhere(message: Json) -> Json:
    """Returns the fields of a node that torch.fx cannot hold."""
    if message.keys() <= _PLACED:
        return {}
    return {key: value for key, value in message.items() if key not in _PLACED}


def create_node(graph: Graph, message: Json, target: object = None) -> Node:
    """Creates a node of the message's kind, target and name at the insertion point, without
    arguments.

    target: the function of a call_function node, if the caller knows it.
    """
    op = _OPS[message["kind"]]
    if target is None or op != "call_function":
        target = find(message["target"]) if op == "call_function" else message["target"]
    node = graph.create_node(op, target, (), {}, name=message["name"])
    if node.name != message["name"]:
        node.name = message["name"]
        graph._graph_namespace._used_names.add(node.name)
    return node


def marks_of(message: Json, custom: object) -> dict[str, object]:
    """Returns training_meta() with the recompute policy as torch's enumerator."""
    marks = training_meta(message, custom)
    if "recompute" in marks:
        marks["recompute"] = torch.utils.checkpoint.CheckpointPolicy[str(marks["recompute"])]
    return marks


def give_node_meta(node: Node, message: Json, args: ArgReader, names: Mapping[str, Node], *, derives: bool) -> None:
    """Sets a node's metadata from its message. derives: `tensor_meta` follows from the value."""
    entries = {}
    for entry in message.get("meta", ()):
        key = entry["key"]
        entries[key] = args.read(entry["value"], names, is_stack=key in writer.STACK_KEYS)
    node.type = entries.pop(writer.NODE_TYPE, None)
    value_key = entries.pop(writer.VALUE_KEY, "val")
    value_type = entries.pop(writer.VALUE_TYPE, None)
    is_immutable = entries.pop(writer.IMMUTABLE, False)
    if "value" in message:
        value = args.value(message["value"])
        if is_immutable:
            value = map_aggregate(value, lambda leaf: leaf)
        node.meta[value_key] = value_type(value) if is_return_type(value_type) else value
    node.meta.update(marks_of(message, entries.get("custom")))
    node.meta.update(entries)
    value = node.meta.get("val")
    if derives and "tensor_meta" not in entries and writer.has_derivable_meta(value):
        node.meta["tensor_meta"] = _extract_tensor_metadata(value)


def _root(attributes: Mapping[str, object]) -> torch.nn.Module:
    """Returns a module that holds these objects at these paths, tensors as buffers."""
    root = torch.nn.Module()
    for path, item in attributes.items():
        *folders, name = path.split(".")
        owner = root
        for folder in folders:
            if not hasattr(owner, folder):
                owner.add_module(folder, torch.nn.Module())
            owner = getattr(owner, folder)
        if isinstance(item, torch.Tensor) and not isinstance(item, torch.nn.Parameter):
            owner.register_buffer(name, item)
        else:
            setattr(owner, name, item)
    return root


def _set_kind(graph_module: GraphModule, path: str, kind: str) -> None:
    folder, _, name = path.rpartition(".")
    owner = graph_module.get_submodule(folder)
    if kind == "non_persistent_buffer":
        owner._non_persistent_buffers_set.add(name)
        return
    tensor = owner._buffers.pop(name)
    owner._non_persistent_buffers_set.discard(name)
    setattr(owner, name, tensor)


def _codegen(record: Json, args: ArgReader) -> torch.fx.graph.CodeGen:
    meta = {entry["key"]: entry["value"] for entry in record.get("meta", ())}
    told = args.read(meta[writer.CODEGEN], {}) if writer.CODEGEN in meta else {}
    kind = _CODEGENS.get(told.get("class", "CodeGen"))
    if kind is None or not issubclass(kind, torch.fx.graph.CodeGen):
        raise LoadError(f"graph {record['name']!r}: unknown code generator {told.get('class')!r} in torch {torch.__version__}")
    if "orig_args" not in told:
        return kind()
    with located(f"graph {record['name']!r}: its structure of arguments"):
        _check_identifiers(name.removeprefix("*").removeprefix("*") for name in told["orig_args"])
        specs = [_tree_spec(record[field]) if field in record else None for field in ("in_spec", "out_spec")]
        return kind(torch.fx.graph._PyTreeInfo(list(told["orig_args"]), *specs))


def _tree_spec(text: str) -> torch.utils._pytree.TreeSpec:
    """Parses a pytree structure. Raises FormError if torch would import a module for it that this
    process has not imported."""

    def check(context: Json) -> Json:
        if "__enum__" in context:
            find(str(context["fqn"]).replace(":", "."))
        return context

    def walk(spec: Json) -> None:
        with contextlib.suppress(json.JSONDecodeError, TypeError):  # a class may have its own form
            json.loads(spec["context"], object_hook=check)
        for child in spec["children_spec"]:
            walk(child)

    walk(json.loads(text)[1])
    return torch.utils._pytree.treespec_loads(text)


def init_fake_groups(module: Json) -> None:
    """Initializes torch.distributed with the fake backend and the file's rank and process groups.
    One process can then run or trace a graph with collectives.

    module: the module of a file, from read_module().

    Raises RuntimeError if torch.distributed is already initialized.
    """
    import torch.testing._internal.distributed.fake_pg as fake

    dist = torch.distributed
    if dist.is_initialized():
        raise RuntimeError("torch.distributed is already initialized")
    rank = module.get("rank", {})
    size = int(rank.get("world_size", 1))
    dist.init_process_group("fake", rank=int(rank.get("rank", 0)), world_size=size, store=fake.FakeStore())
    default = dist.distributed_c10d._get_default_group()
    for record in module.get("groups", ()):
        ranks = [int(member) for member in record.get("ranks", ())]
        if record["uid"] == default.group_name:
            continue
        group, _ = dist.distributed_c10d._new_process_group_helper(
            len(ranks),
            ranks.index(int(rank.get("rank", 0))),
            ranks,
            dist.Backend("fake"),
            fake.FakeStore(),
            group_name=record["uid"],
            timeout=dist.default_pg_timeout,
            group_desc=record.get("description"),
        )
        dist.distributed_c10d._world.pg_group_ranks[group] = {member: i for i, member in enumerate(ranks)}


def make_groups(module: Json) -> list[str]:
    """Creates the process groups that a pass added to the file and that this process lacks, and
    returns their names.

    Every rank of the default group must call it for its own file: all ranks create each group and
    its counterparts on other ranks, in the order of the file. Does nothing if torch.distributed is
    not initialized.
    """
    dist = torch.distributed
    if not dist.is_available() or not dist.is_initialized():
        return []
    made = []
    for record in module.get("groups", ()):
        if not record.get("made_by_pass") or find_group(record["uid"]) is not None:
            continue
        for ranks in _alike(module, record.get("mesh"), [int(rank) for rank in record["ranks"]]):
            group = dist.new_group(ranks, sort_ranks=False, group_desc=record["uid"])
            if dist.get_rank() in ranks:
                torch._C._distributed_c10d._register_process_group(record["uid"], group)
        made.append(record["uid"])
    return made


def _alike(module: Json, name: str | None, ranks: list[int]) -> list[list[int]]:
    """Returns the group and its counterparts for all other ranks, each once: the groups along the
    same dimensions of the file's mesh."""
    for mesh in module.get("meshes", ()):
        if mesh.get("name") != name:
            continue
        shape = [int(size) for size in mesh["shape"]]
        by_place = dict(zip(itertools.product(*map(range, shape)), map(int, mesh["ranks"]), strict=True))
        place_of = {rank: place for place, rank in by_place.items()}
        if not set(ranks) <= place_of.keys():
            continue
        varies = [len({place_of[rank][dim] for rank in ranks}) > 1 for dim in range(len(shape))]
        others = itertools.product(*(range(1 if does else size) for does, size in zip(varies, shape, strict=True)))
        return [
            [by_place[tuple(place_of[rank][dim] if does else other[dim] for dim, does in enumerate(varies))] for rank in ranks]
            for other in others
        ]
    raise LoadError(f"a pass made a group with the ranks {ranks}, which no mesh of the file contains")
