"""Remat of one tagged graph by PyTorch and by fxopt, with both results in one comparable form."""

from __future__ import annotations

import copy
import pathlib
from dataclasses import dataclass

from fxopt import bridge, training
from fxopt.form import Json
from fxopt_program import Fxopt, recompute_origin
from torch._functorch._activation_checkpointing.remat_using_tags_for_fwd_loss_bwd_graph_pass import (
    remat_using_tags_for_fwd_loss_bwd_graph,
)
from torch.fx import GraphModule
from torch.utils.checkpoint import CheckpointPolicy

_POLICIES = {tag: CheckpointPolicy[name] for name, tag in training.TAGS.items()}
_MARK = "peer_original"  # the name before PyTorch's pass, which renames nodes

# A node of either result: its name in the tagged graph, and whether it is the copy.
Identity = tuple[str, bool]


@dataclass
class Wiring:
    """A result: the inputs of every node, in schedule order."""

    inputs: dict[Identity, tuple[Identity, ...]]

    def copied(self) -> set[str]:
        return {name for name, is_copy in self.inputs if is_copy}

    def readers(self) -> dict[str, set[Identity]]:
        """For each copied original, the users of the copy."""
        result: dict[str, set[Identity]] = {name: set() for name in self.copied()}
        for reader, read in self.inputs.items():
            for name, is_copy in read:
                if is_copy:
                    result[name].add(reader)
        return result


def copy_of(graph_module: GraphModule) -> GraphModule:
    """The same graph with its own nodes and metadata dicts; values and attributes are shared."""
    return GraphModule(graph_module, copy.deepcopy(graph_module.graph))


def tagged(graph_module: GraphModule, main: Json) -> GraphModule:
    """A copy of `graph_module` with the tags and explicit regions that fxopt wrote on nodes of the
    same name."""
    result = copy_of(graph_module)
    records = {record["name"]: record for record in main["nodes"]}
    for node in result.graph.nodes:
        record = records.pop(node.name)
        if "tag" in record:
            node.meta["recompute"] = _POLICIES[record["tag"]]
        if "id" in record.get("region", {}):
            node.meta["ac_graph_id"] = int(record["region"]["id"])
        node.meta[_MARK] = node.name
    if records:
        raise ValueError(f"fxopt has nodes that are missing in the trace: {', '.join(sorted(records)[:10])}")
    return result


def torch_remat(graph_module: GraphModule) -> GraphModule:
    return remat_using_tags_for_fwd_loss_bwd_graph(graph_module)


def torch_wiring(result: GraphModule) -> Wiring:
    names = {node: node.meta[_MARK] for node in result.graph.nodes}
    identities = {node: (name, node.name == name + "_recomputed") for node, name in names.items()}
    if len(set(identities.values())) != len(identities):
        raise ValueError("PyTorch copied a node twice")
    nodes = result.graph.nodes
    return Wiring({identities[node]: tuple(identities[source] for source in node.all_input_nodes) for node in nodes})


def fxopt_wiring(result: Json, before: Json, graph_module: GraphModule) -> Wiring:
    """result, before: fxopt's output, and the tagged graph it read. graph_module: `result` as a
    torch.fx graph."""
    names = {int(record.get("uid", 0)): record["name"] for record in before["nodes"]}
    identities: dict[str, Identity] = {}
    for record in result["nodes"]:
        origin = recompute_origin(record)
        identities[record["name"]] = (record["name"], False) if origin is None else (names[origin], True)
    if len(set(identities.values())) != len(identities):
        raise ValueError("fxopt copied a node twice")
    nodes = graph_module.graph.nodes
    inputs = {identities[node.name]: tuple(identities[source.name] for source in node.all_input_nodes) for node in nodes}
    return Wiring(inputs)


@dataclass
class FxoptResult:
    """A graph that fxopt wrote: the binary file, its first graph as JSON, and as a torch.fx
    graph."""

    path: pathlib.Path
    main: Json
    graph_module: GraphModule


def fxopt_result(fxopt: Fxopt, source: pathlib.Path, passes: str, path: pathlib.Path) -> FxoptResult:
    """Runs `passes` over the file `source` and reads the result."""
    fxopt.opt(source, path, passes)
    return read_result(fxopt, path)


def read_result(fxopt: Fxopt, path: pathlib.Path) -> FxoptResult:
    """A file of fxopt, as JSON and as the loader builds it."""
    main = bridge.read_module(path, fxopt.program)["graphs"][0]
    return FxoptResult(path, main, bridge.load(path, fxopt=fxopt.program))


def differences(torch_side: Wiring, fxopt_side: Wiring) -> list[str]:
    """Differences in the copied originals, or in the users of a copy."""
    lines = [f"only PyTorch copies {name}" for name in sorted(torch_side.copied() - fxopt_side.copied())]
    lines += [f"only fxopt copies {name}" for name in sorted(fxopt_side.copied() - torch_side.copied())]
    readers = fxopt_side.readers()
    for name, expected in torch_side.readers().items():
        found = readers.get(name)
        if found is not None and found != expected:
            lines.append(f"readers of the copy of {name}: PyTorch {_shown(expected - found)}, fxopt {_shown(found - expected)}")
    return lines


def _shown(identities: set[Identity]) -> str:
    return ", ".join(sorted(f"copy of {name}" if is_copy else name for name, is_copy in identities)) or "no other"
