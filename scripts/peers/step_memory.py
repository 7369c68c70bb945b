#!/usr/bin/env python3
"""Compares the ideal peak of `fxopt mem --step` with a run of both graphs in one process.

    scripts/peers/step_memory.py [--fxopt PROGRAM] [NAME...]

Pairs: those of testdata, and joint graphs of testdata that PyTorch's min-cut partitioner cuts here.
Names: pair, pair_twin, or a joint graph (default: these two, gpt2_joint, resnet50_joint,
llama8b_joint and their twins). The replay (peak_counter.py) runs fake tensors node by node, keeps
the values that its caller keeps, and counts storages; it knows nothing of fxopt. Each cut pair is
measured twice: with the roles of its inputs and outputs, and with only the two kinds, so that
inputs are bound by name. Exits with 1 if a peak differs by a byte.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from command import ROOT, command_line
from bound_values import BoundGraph
import torch
from fxopt import bridge
from fxopt.reader import init_fake_groups
from fxopt_program import Fxopt
from memory import load
from peak_counter import replay_pair
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

Json = dict[str, Any]
JOINT = ("gpt2_joint", "resnet50_joint", "llama8b_joint")
PAIRS = ("pair", "pair_twin")
NAMES = (*PAIRS, *JOINT, *(f"{name}_twin" for name in JOINT))


def inputs_of(graph_module: GraphModule) -> list[Node]:
    return [node for node in graph_module.graph.nodes if node.op == "placeholder"]


def outputs_of(graph_module: GraphModule) -> list[object]:
    return tree_leaves(next(iter(reversed(graph_module.graph.nodes))).args[0])


def as_json(fxopt: Fxopt, path: pathlib.Path, folder: pathlib.Path) -> Json:
    target = folder / f"{path.name.split('.')[0]}.json"
    subprocess.run([fxopt.program, "convert", str(path), "-o", str(target)], check=True)
    return json.loads(target.read_text(encoding="utf-8"))["module"]


def with_groups(fxopt: Fxopt, name: str, folder: pathlib.Path) -> Json:
    """The module of that name in testdata. Its process groups, and no others, exist as fake
    groups."""
    module = as_json(fxopt, ROOT / "testdata" / f"{name}.pb.zst", folder)
    if module.get("groups"):
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        init_fake_groups(module)
    return module


def asked(about: str | None, known: Sequence[str]) -> argparse.Namespace:
    """The command line of a script on graphs of testdata: the program, and names among the known
    ones."""
    parser = command_line(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown names: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return options


def measured(fxopt: Fxopt, paths: list[pathlib.Path]) -> dict[str, int]:
    report = fxopt.run("mem", "--step", *map(str, paths))["files"][0]["graphs"][0]
    return {device["device"]: device["ideal"]["peak_bytes"] for device in report["devices"]}


def recorded(module: Json) -> tuple[dict[str, Json], list[Json]]:
    """The roles of inputs by name, and of outputs in order, as save() takes them."""
    graph = module["graphs"][0]
    words = {node["name"]: dict(node.get("input", {})) for node in graph["nodes"] if node["kind"].endswith("PLACEHOLDER")}
    outputs = [dict(spec) for spec in graph.get("outputs", [])]
    for spec in [*words.values(), *outputs]:
        if "role" in spec:
            spec["role"] = spec["role"].split("_ROLE_")[1].lower()
    return words, outputs


class Pair:
    """Two graphs, their files, and the bindings of backward's saved inputs to forward's outputs."""

    def __init__(self, forward: GraphModule, backward: GraphModule, mutated: list[int]) -> None:
        self.forward = forward
        self.backward = backward
        self.mutated = mutated
        leaves = outputs_of(forward)
        place = {leaf.name: i for i, leaf in enumerate(leaves) if isinstance(leaf, Node)}
        self.saved = {node.name: place[node.name] for node in inputs_of(backward) if node.name in place}

    def role(self, node: Node) -> Json:
        if node.name not in self.saved:
            return {}
        return {"role": "saved_value", "saved_from_output": self.saved[node.name]}

    def replayed(self) -> dict[str, int]:
        return replay_pair(BoundGraph(self.forward), BoundGraph(self.backward), self.saved, self.mutated)


def of_testdata(fxopt: Fxopt, name: str, folder: pathlib.Path) -> tuple[Pair, dict[str, list[pathlib.Path]]]:
    suffix = name.removeprefix("pair")
    paths = [ROOT / "testdata" / f"pair_{side}{suffix}.pb.zst" for side in ("forward", "backward")]
    modules = [as_json(fxopt, path, folder) for path in paths]
    mutated = [i for i, spec in enumerate(recorded(modules[0])[1]) if spec.get("role") == "mutation"]
    pair = Pair(*(load(module, folder) for module in modules), mutated)
    pair.saved = {
        node: int(role["saved_from_output"]) for node, role in recorded(modules[1])[0].items() if "saved_from_output" in role
    }
    return pair, {"roles": paths}


def by_min_cut(fxopt: Fxopt, name: str, folder: pathlib.Path) -> tuple[Pair, dict[str, list[pathlib.Path]]]:
    return cut(fxopt, name, folder, min_cut_rematerialization_partition)


def cut(
    fxopt: Fxopt, name: str, folder: pathlib.Path, partition: Callable[..., tuple[GraphModule, GraphModule]]
) -> tuple[Pair, dict[str, list[pathlib.Path]]]:
    """A joint graph of testdata, cut in two by a partitioner of PyTorch."""
    module = with_groups(fxopt, name, folder)
    roles, outputs = recorded(module)
    joint = load(module, folder)
    count = int(module["graphs"][0]["num_forward_outputs"])
    forward, backward = partition(joint, None, num_fwd_outputs=count)
    pair = Pair(forward, backward, [i for i, spec in enumerate(outputs[:count]) if spec.get("role") == "mutation"])
    saved = len(outputs_of(forward)) - count
    told = {
        "forward": {"roles": {node.name: roles[node.name] for node in inputs_of(forward)}},
        "backward": {"roles": {node.name: roles.get(node.name, {}) | pair.role(node) for node in inputs_of(backward)}},
    }
    told["forward"] |= {"outputs": [*outputs[:count], *({"role": "saved_value"} for _ in range(saved))]}
    told["backward"] |= {"outputs": outputs[count:]}
    files: dict[str, list[pathlib.Path]] = {"roles": [], "names": []}
    for how, paths in files.items():
        for side, graph_module in (("forward", forward), ("backward", backward)):
            paths.append(folder / f"{name}_{side}_{how}.pb")
            facts = told[side] if how == "roles" else {}
            if not facts:
                for node in graph_module.graph.nodes:
                    node.meta.pop("desc", None)
            bridge.save(graph_module, paths[-1], kind=side, fxopt=fxopt.program, **facts)
    return pair, files


@dataclass
class Row:
    name: str
    nodes: int
    saved: int
    bound_by: str  # "roles", "names"
    device: str
    fxopt: int | None
    replay: int
    seconds: float  # time of the fxopt program, including its start

    def __str__(self) -> str:
        difference = "-" if self.fxopt is None else self.fxopt - self.replay
        cells = (self.name, self.nodes, self.saved, self.bound_by, self.device, self.fxopt, self.replay, difference)
        return f"| {' | '.join(map(str, cells))} | {self.seconds:.2f} |"


def rows_of(fxopt: Fxopt, name: str) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        pair, files = (of_testdata if name in PAIRS else by_min_cut)(fxopt, name, folder)
        nodes = sum(len(side.graph.nodes) for side in (pair.forward, pair.backward))
        for how, paths in files.items():
            if how == "names":  # the outputs that are new values of inputs are unknown
                pair.mutated = []
            expected = pair.replayed()
            start = time.perf_counter()
            found = measured(fxopt, paths)
            seconds = time.perf_counter() - start
            for device, size in sorted(expected.items()):
                yield Row(name, nodes, len(pair.saved), how, device, found.get(device), size, seconds)


def main() -> int:
    options = asked(__doc__, NAMES)
    fxopt = Fxopt(options.fxopt)
    wrong = 0
    print("| step | nodes | saved | bound by | device | fxopt | replay | difference | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.names or NAMES:
        for row in rows_of(fxopt, name):
            wrong += row.fxopt != row.replay
            print(row, flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
