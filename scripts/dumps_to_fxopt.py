#!/usr/bin/env python3
"""Turns neutral graph dumps (gzipped JSON, format "fxdump/1") into modules of fxopt. Needs neither torch nor a GPU.

    scripts/dumps_to_fxopt.py DUMP.json.gz... -o FOLDER [--fxopt PROGRAM] [--form fxg.zst|fxg|pb|pb.zst|json]

Each dump gives FOLDER/<name>.<form>. Without an fxopt program only `json` can be written, and it is.

What a dump holds becomes fields of the schema; nothing but its counts of metadata keys is dropped:
  - recompute, ac_graph_id, has_backward_hook, autograd_backward, partitioner_tag, seq_nr, custom, fsdp_bucket: fields
    of the node, see training_fields(). Every other key: typed metadata in the dump's order. A dump holds the *text*
    of objects (from_node, desc of the output, ..., cut at 160 characters): they stay strings; original_aten becomes
    an operator and unbacked_bindings a dict when they read as such.
  - roles: what the dump says; where it gives only a name ("state", or no role) parameters are told from buffers by the
    number of gradients, `guessed`. Output roles are not in the dumps: they follow from the convention of the tracer
    (loss, then one gradient for each parameter; AOT joint graphs: forward outputs, then one gradient or None for each
    input), `guessed`, and are written only if counts and shapes agree.
  - storages as the tracer numbered them, also where it was wrong (copies made by rematerialization share the
    original's).
  - subgraphs of higher-order ops: graphs of their own, named <graph>.<attribute>.
File names in strings lose what stands before the folder of installed packages.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import pathlib
import re
import sys

from fxopt import form, tool
from fxopt.form import FormError, Json
from fxopt.training import input_spec, training_fields

_OPERATOR_NAME = re.compile(r"[A-Za-z_]\w*((?:\.\w+)*)")


class DumpConverter:
    """One dump on its way to the JSON form."""

    def __init__(self, dump: Json) -> None:
        self.dump = dump
        self.symbols = form.SymbolTable()
        self.devices: dict[int, str] = {}  # storage id -> device
        self.graphs: list[Json] = []
        self.next_uid = 0

    # ---- values

    def dim(self, value: int | Json) -> int | str:
        return value if isinstance(value, int) else self.symbols.expression(value["sym"])

    def tensor(self, value: Json) -> Json:
        tensor: Json = {"dtype": form.dtype(value["dtype"])}
        tensor |= form.dims("sizes", [self.dim(x) for x in value["shape"]])
        if "layout" in value:
            tensor["layout"] = form.layout(value["layout"].removeprefix("torch."))
        else:
            tensor |= form.dims("strides", [self.dim(x) for x in value["stride"]])
            if value["offset"] != 0:
                tensor["offset"] = form.number(self.dim(value["offset"]))
            if value["storage"] is not None:
                tensor["storage"] = value["storage"]
                self.devices.setdefault(value["storage"], value["device"])
        tensor["device"] = value["device"]
        if value.get("requires_grad"):
            tensor["requires_grad"] = True
        return tensor

    def value(self, value: Json, subgraph: str | None) -> Json:
        if "shape" in value:
            return {"tensor": self.tensor(value)}
        for kind in ("tuple", "list"):
            if kind in value:
                items = [self.value(item, None) for item in value[kind]]
                return {kind: {"items": items} if items else {}}
        if "sym" in value:
            symbol_type = form.SYMBOL_TYPES[value.get("type", "SymInt")]
            return {"symbolic": {"type": symbol_type, "expr": self.symbols.expression(value["sym"])}}
        if "const" in value:
            return {"none": True} if value["const"] is None else {"scalar": form.plain(value["const"])}
        if subgraph is not None:
            return {"graph": subgraph}
        return {"opaque": {"type": value["other"]}}

    # ---- arguments

    def arg(self, arg: object) -> Json:
        if (scalar := form.scalar(arg)) is not None:
            return scalar
        if isinstance(arg, list):
            return form.sequence(arg, self.arg)
        (kind, value), *rest = arg.items()
        if rest:
            raise FormError(f"the dump holds only the text of an argument: {str(arg)[:120]}")
        match kind:
            case "n":
                return {"node": value}
            case "tuple":
                return form.sequence(value, self.arg, "tuple")
            case "dict":
                return form.mapping(value, self.arg)
            case "slice":
                return {"slice": {"items": [self.arg(item) for item in value]}}
            case "float":
                return form.floating(float(value))
            case "sym":
                return {"expr": self.symbols.expression(value)}
            case "dtype":
                return {"dtype": form.dtype(value)}
            case "layout":
                return {"layout": form.layout(value)}
            case "memory_format":
                return {"memory_format": form.memory_format(value)}
            case "device" | "op":
                return {kind: value}
        raise FormError(f"unknown argument encoding {kind!r}")

    # ---- metadata

    def meta_value(self, key: str, value: object) -> Json:
        if key == "original_aten" and isinstance(value, str) and (name := _OPERATOR_NAME.fullmatch(value)):
            return {"op": value if name[1] else "higher_order." + value}  # of those the framework prints the bare name
        if key == "unbacked_bindings" and (pairs := re.fullmatch(r"\{(\w+): \(\)\}", str(value))):
            return {"dict": {"items": [{"key": {"expr": self.symbols.expression(pairs[1])}, "value": {"tuple": {}}}]}}
        if isinstance(value, str):
            return {"string": form.shorten_paths(value)}
        return form.plain(value)

    def node_fields(self, meta: Json) -> Json:
        """Everything that metadata gives a node, `val` and a placeholder's `desc` excepted."""
        known = {key: value for key, value in meta.items() if key != "val"}
        if isinstance(known.get("fsdp_bucket"), str):
            try:
                known["fsdp_bucket"] = ast.literal_eval(known["fsdp_bucket"])
            except (SyntaxError, ValueError):
                pass  # cut short in the dump: stays the string it is
        fields, consumed = training_fields(known)
        entries = [
            {"key": key, "value": self.meta_value(key, value)}
            for key, value in meta.items()
            if key != "val" and key not in consumed
        ]
        if entries:
            fields["meta"] = entries
        return fields

    # ---- graphs

    def node(self, source: Json, graph: str, children: Json) -> Json:
        meta = dict(source.get("meta", {}))
        roles = self.dump.get("roles") or {}
        node: Json = {"kind": form.NODE_KINDS[source["op"]], "name": source["name"], "target": source["target"]}
        if source["args"]:
            node["args"] = [self.arg(arg) for arg in source["args"]]
        if source.get("kwargs"):
            node["kwargs"] = [{"name": name, "arg": self.arg(arg)} for name, arg in source["kwargs"].items()]
        if "val" in meta:
            is_subgraph = source["op"] == "get_attr" and source["target"] in children
            node["value"] = self.value(meta["val"], f"{graph}.{source['target']}" if is_subgraph else None)
        if source["op"] == "placeholder" and "desc" in roles.get(source["name"], {}):
            meta.pop("desc", None)  # roles hold the same text, not cut
        node["uid"] = self.next_uid
        self.next_uid += 1
        return node | self.node_fields(meta)

    def graph(self, source: Json, name: str, owner: str | None) -> None:
        children = source["subgraphs"]
        result: Json = {"name": name, "kind": "GRAPH_KIND_SUBGRAPH" if owner else self.graph_kind()}
        self.graphs.append(result)
        result["nodes"] = [self.node(node, name, children) for node in source["nodes"]]
        attributes = [{"path": child, "graph": f"{name}.{child}"} for child in children]
        if source["tensor_constants"]:
            raise FormError(f"graph {name!r} has tensor constants, whose data is not in the dump")
        if attributes:
            result["attributes"] = attributes
        if owner:
            result["owner"] = owner
        for child, subgraph in children.items():
            self.graph(subgraph, f"{name}.{child}", name)

    def graph_kind(self) -> str:
        """Dumps are of two kinds; `info.kind` says joint for one of them."""
        joint = "joint" in self.dump["info"].get("kind", "")
        return "GRAPH_KIND_JOINT" if joint else "GRAPH_KIND_FORWARD_LOSS_BACKWARD"

    # ---- module

    def define_symbols(self) -> None:
        """Where unbacked symbols come from: the nodes that say so."""
        for source in self.dump["graph"]["nodes"]:
            bindings = source.get("meta", {}).get("unbacked_bindings", "")
            for name in re.findall(r"(\w+): \(\)", bindings):
                if name in self.symbols.records and "node" not in self.symbols.records[name]:
                    self.symbols.records[name] |= {"graph": self.graphs[0]["name"], "node": source["name"]}

    def storages(self) -> list[Json]:
        records = []
        for key, size in self.dump["storages"].items():
            record: Json = {"id": int(key)}
            if size is not None:
                record["bytes"] = form.number(self.dim(size))
            if int(key) in self.devices:
                record["device"] = self.devices[int(key)]
            records.append(record)
        return sorted(records, key=lambda record: record["id"])

    def module(self) -> Json:
        dump = self.dump
        producer = {"tool": "dumps_to_fxopt", "framework": "torch", "framework_version": dump["torch"]}
        if dump["info"].get("recipe"):
            producer["recipe"] = dump["info"]["recipe"]
        self.graph(dump["graph"], "main", None)
        assign_roles(self.graphs[0], dump.get("roles") or {})
        storages = self.storages()
        self.define_symbols()
        module: Json = {"name": dump["name"], "producer": producer, "graphs": self.graphs}
        module["symbols"] = list(self.symbols.records.values())
        module["storages"] = storages
        module["groups"] = [
            {"uid": uid, "ranks": group["ranks"], "description": group["desc"], "backend": group["backend"]}
            for uid, group in dump["process_groups"].items()
        ]
        module["op_schemas"] = [
            {"target": target, "schema": op["schema"], "is_mutable": op["mutable"]}
            | ({"tags": op["tags"]} if op["tags"] else {})
            for target, op in dump["schemas"].items()
        ]
        next_storage = max((record["id"] for record in storages), default=-1) + 1
        module["counters"] = {"next_uid": self.next_uid, "next_storage": next_storage}
        info = {key: value for key, value in dump["info"].items() if key != "recipe"}
        module["meta"] = [{"key": "dump_info", "value": form.plain(info)}]
        return {key: value for key, value in module.items() if value}


# ---- calling conventions


Group = tuple[Json, list[Json]]  # an input as the framework's user sees it: its specification, its placeholders


def logical_inputs(nodes: list[Json], roles: Json) -> list[Group]:
    """Placeholders grouped as the framework's user sees them: a distributed tensor is its local tensor and its mesh."""
    groups: list[Group] = []
    for node in nodes:
        role = roles.get(node["name"], {})
        spec = input_spec(role["desc"]) if "desc" in role else dict(role)
        is_mesh = "opaque" in node.get("value", {})
        if is_mesh and groups and spec.get("fqn") and groups[-1][0].get("fqn") == spec["fqn"]:
            groups[-1][1].append(node)
            if "desc" not in role:
                groups[-1][1][0]["input"]["subclass_path"] = ["_local_tensor"]
                spec["subclass_path"] = ["device_mesh"]
        else:
            groups.append((spec, [node]))
        node["input"] = spec
    return groups


def sizes_of(node: Json | None) -> object:
    tensor = (node or {}).get("value", {}).get("tensor")
    return None if tensor is None else (tensor.get("sizes"), tensor.get("symbolic_sizes"))


def storage_of(node: Json) -> int | None:
    return node.get("value", {}).get("tensor", {}).get("storage")


def gradient_specs(groups: list[Group], outputs: list[Json], nodes: dict[str, Json]) -> list[Json] | None:
    """The gradient of each placeholder of each group; nothing unless every leaf fits. A None, one for a whole group, is
    no gradient and has no specification, as in the framework's own list."""
    specs: list[Json] = []
    for _, members in groups:
        if len(specs) < len(outputs) and "none" in outputs[len(specs)]:
            specs.append({})
            continue
        for member in members:
            leaf = outputs[len(specs)] if len(specs) < len(outputs) else {}
            if sizes_of(nodes.get(leaf.get("node"))) != sizes_of(member):
                return None
            spec = {"role": "OUTPUT_ROLE_GRADIENT", "of": member["name"], "guessed": True}
            spec |= {key: member["input"][key] for key in ("fqn", "subclass_path") if key in member["input"]}
            specs.append(spec)
    return specs if len(specs) == len(outputs) else None


def training_step_outputs(groups: list[Group], outputs: list[Json], nodes: dict[str, Json]) -> list[Json] | None:
    """Outputs of a forward-loss-backward graph: the loss, then the gradients of the parameters, tied ones once."""
    seen: set[int] = set()
    named = []
    for spec, members in groups:
        storage = storage_of(members[0])
        if spec.get("role") not in ("input", "buffer") and spec.get("fqn"):
            named.append((storage in seen, (spec, members)))
            seen.add(storage)
    for kept in ([group for tied, group in named if not tied], [group for _, group in named]):
        for count in range(len(kept), 0, -1):
            if sum(len(members) for _, members in kept[:count]) != len(outputs) - 1:
                continue
            if (specs := gradient_specs(kept[:count], outputs[1:], nodes)) is not None:
                return [{"role": "OUTPUT_ROLE_LOSS", "guessed": True}, *specs]
    return None


def joint_outputs(groups: list[Group], outputs: list[Json], nodes: dict[str, Json]) -> list[Json] | None:
    """Outputs of a joint graph: mutated buffers, the loss, then a gradient or None for each input but the tangents."""
    inputs = [group for group in groups if group[0].get("role") != "INPUT_ROLE_TANGENT"]
    buffers = [group for group in inputs if group[0].get("role") == "INPUT_ROLE_BUFFER"]
    for forward in (1, len(buffers) + 1):
        specs = gradient_specs(inputs, outputs[forward:], nodes)
        mutated = gradient_specs(buffers[: forward - 1], outputs[: forward - 1], nodes)
        if specs is not None and mutated is not None:
            mutations = [spec | {"role": "OUTPUT_ROLE_MUTATION"} for spec in mutated]
            return [*mutations, {"role": "OUTPUT_ROLE_LOSS", "guessed": True}, *specs]
    return None


def assign_roles(graph: Json, roles: Json) -> None:
    """Input and output specifications of the main graph, in place; see the file comment."""
    placeholders = [node for node in graph["nodes"] if node["kind"] == "NODE_KIND_PLACEHOLDER"]
    groups = logical_inputs(placeholders, roles) if roles else []
    outputs = form.leaves(graph["nodes"][-1]["args"][0])
    nodes = {node["name"]: node for node in graph["nodes"]}
    joint = graph["kind"] == "GRAPH_KIND_JOINT"
    specs = (joint_outputs if joint else training_step_outputs)(groups, outputs, nodes) if groups else None
    gradients = {spec["of"] for spec in specs or [] if spec.get("role") == "OUTPUT_ROLE_GRADIENT"}
    storages = {storage_of(node) for node in placeholders if node["name"] in gradients}
    for _, members in groups:
        for node in members:
            finish_role(node["input"], members[0], gradients, storages, specs is not None)
    for node in placeholders:
        if not node.get("input"):
            node.pop("input", None)
    if specs is not None:
        graph["outputs"] = specs
    if joint and specs is not None:
        forward = [i for i, spec in enumerate(specs) if spec.get("role") == "OUTPUT_ROLE_LOSS"]
        graph["num_forward_outputs"] = forward[0] + 1


def finish_role(spec: Json, first: Json, gradients: set, storages: set, gradients_known: bool) -> None:
    """Turns the dump's word for a role into the schema's; a bare name is a parameter when it has a gradient."""
    if str(spec.get("role", "")).startswith("INPUT_ROLE_"):
        return
    word = spec.pop("role", None)
    if word in ("parameter", "buffer", "input"):
        spec["role"] = "INPUT_ROLE_" + word.upper()
    elif spec.get("fqn") and gradients_known:
        is_parameter = first["name"] in gradients or storage_of(first) in storages
        spec["role"] = "INPUT_ROLE_PARAMETER" if is_parameter else "INPUT_ROLE_BUFFER"
        spec["guessed"] = True


# ---- command


def read_dump(path: pathlib.Path) -> Json:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        dump = json.load(file)
    if not isinstance(dump, dict) or dump.get("format") != "fxdump/1":
        raise FormError('not a dump: no format "fxdump/1"')
    return dump


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Turns neutral graph dumps into modules of fxopt, without torch.")
    parser.add_argument("dumps", nargs="+", type=pathlib.Path, metavar="DUMP", help="a .json.gz (or .json) file")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="FOLDER", help="made if missing")
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    parser.add_argument("--form", default="fxg.zst", choices=["fxg.zst", "fxg", "pb", "pb.zst", "json"])
    options = parser.parse_args(arguments)

    program = tool.find_fxopt(options.fxopt)
    if options.fxopt and program is None:
        parser.error(f"no program {options.fxopt}")
    extension = options.form if program else "json"
    if extension != options.form:
        print(f"dumps_to_fxopt: no fxopt program found: writing json instead of {options.form}", file=sys.stderr)
    options.output.mkdir(parents=True, exist_ok=True)
    failed = 0
    for path in options.dumps:
        name = path.name.removesuffix(".gz").removesuffix(".json")
        target = options.output / f"{name}.{extension}"
        try:
            tool.write_module(DumpConverter(read_dump(path)).module(), target, program)
        except (FormError, KeyError, OSError, RuntimeError, ValueError) as error:
            print(f"dumps_to_fxopt: {path}: {type(error).__name__}: {error}", file=sys.stderr)
            failed += 1
        else:
            print(target)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
