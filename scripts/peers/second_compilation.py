#!/usr/bin/env python3
"""Checks that a module compiled twice with save-all saves the same values twice.

    scripts/peers/second_compilation.py [--fxopt PROGRAM] [--first PASSES] [GRAPH]

The first compilation cuts GRAPH (default: llama8b_joint of testdata, 128 ranks) by PASSES, which
end in partition. The pair becomes an autograd function, as autoparallel wraps its compiled module.
AOTAutograd traces a step of it on fake tensors and keeps nodes' metadata, so the gathers of the
first backward are in the second joint graph. The second compilation cuts that joint graph by
partition{mode=save-all}, as a file and by fxopt.partition, and by PyTorch's two partitioners.

Prints for each: gathers in forward and in backward; saved values, those that the first compilation
did not save, and those that are gone, by their names there; ideal peaks of both graphs. Exits with
1 if save-all saves another set, gathers more often, or has a peak that is more than 0.1 % higher;
the storages that make the difference are named. Needs torch; no GPU.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from command import ROOT, command_line
import torch
from fxopt import bridge
from fxopt_program import Fxopt
from partitions import half
from step_memory import as_json, inputs_of, outputs_of
from fxopt.partition import partition
from fxopt.reader import init_fake_groups
from torch import Tensor, nn
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch.fx import GraphModule, Interpreter, Node
from traces import routes

Json = dict[str, Any]
FIRST = "fsdp-gathers,partition{mode=min-cut,mark-saved=true}"


def is_saved(node: object) -> bool:
    return isinstance(node, Node) and node.op == "call_function"


def saved_names(forward: GraphModule, count: int) -> list[str]:
    """The names in the first compilation of the values that forward saves, without parameters and
    inputs."""
    names = []
    for node in outputs_of(forward)[count:]:
        if not is_saved(node) or not isinstance(node.meta.get("val"), Tensor):
            continue
        custom = node.meta.get("custom") or {}
        part = ""
        if "getitem" in node.name and isinstance(node.args[0], Node):
            custom = node.args[0].meta.get("custom") or custom
            part = f"[{node.args[1]}]"
        names.append(f"{custom.get('ap_must_save_as', f'unmarked {node.name}')}{part}")
    return names


def gathers(graph_module: GraphModule) -> int:
    return sum("all_gather" in str(node.target) for node in graph_module.graph.nodes if node.op == "call_function")


@dataclass(frozen=True)
class Pair:
    forward: GraphModule
    backward: GraphModule
    count: int  # number of forward's outputs that are the user's
    gradients: dict[str, int]  # by input: the backward output that is its gradient


class Wrapped(nn.Module):
    """The pair as one differentiable function of its tensors; other inputs are constants."""

    def __init__(self, pair: Pair) -> None:
        super().__init__()
        self.given: list[tuple[str, object]] = []
        self.names: list[str] = []
        self._pair = pair
        for node in inputs_of(pair.forward):
            value = node.meta.get("val")
            if not isinstance(value, Tensor):
                self.given.append(("constant", value))
            elif node.name in pair.gradients:
                setattr(self, node.name, nn.Parameter(value.detach(), requires_grad=True))
                self.given.append(("parameter", node.name))
            else:
                self.given.append(("input", len(self.names)))
                self.names.append(node.name)

    def forward(self, *inputs: Tensor) -> Tensor:
        forward, backward, count = self._pair.forward, self._pair.backward, self._pair.count
        of = [self._pair.gradients.get(node.name) for node in inputs_of(forward)]
        values = [
            getattr(self, str(at)) if kind == "parameter" else inputs[int(at)] if kind == "input" else at
            for kind, at in self.given
        ]
        tensors = [value for value in values if isinstance(value, Tensor)]
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]

        class Step(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *given: Tensor) -> Any:
                own = list(values)
                for place, value in zip(places, given, strict=True):
                    own[place] = value
                found = flat(Interpreter(forward).run(*own))
                rest = found[count:]
                ctx.kinds = [isinstance(value, Tensor) for value in rest]
                ctx.others = [value for value in rest if not isinstance(value, Tensor)]
                ctx.save_for_backward(*(value for value in rest if isinstance(value, Tensor)))
                user = tuple(found[:count])
                return user[0] if count == 1 else user

            @staticmethod
            def backward(ctx: Any, *tangents: Tensor) -> Any:
                saved, others = iter(ctx.saved_tensors), iter(ctx.others)
                rest = dict(
                    zip(
                        [leaf.name for leaf in outputs_of(forward)[count:]],
                        [next(saved if is_tensor else others) for is_tensor in ctx.kinds],
                        strict=True,
                    )
                )
                arriving = iter(tangents)
                own = [rest[node.name] if node.name in rest else next(arriving) for node in inputs_of(backward)]
                gradients = flat(Interpreter(backward).run(*own))
                return tuple(None if of[place] is None else gradients[of[place]] for place in places)

        return Step.apply(*tensors)


def flat(value: object) -> list[object]:
    return torch.utils._pytree.tree_leaves(value, is_leaf=lambda item: item is None)


def second_trace(pair: Pair) -> tuple[GraphModule, dict[str, object]]:
    values = {node.name: node.meta["val"] for node in inputs_of(pair.forward)}
    mode = next(value.fake_mode for value in values.values() if isinstance(value, Tensor))
    with mode:
        module = Wrapped(pair)
    return routes.trace_joint(module, lambda model, *args: model(*args), [values[name] for name in module.names], mode)


@dataclass(frozen=True)
class Row:
    name: str
    saved: list[str]
    gathers: tuple[int, int]
    peaks: tuple[int, int]  # ideal, bytes
    live: tuple[dict[str, int], dict[str, int]]  # the largest storages at the peak

    def text(self, first: Row | None) -> str:
        added = gone = 0
        if first is not None:
            added, gone = len(set(self.saved) - set(first.saved)), len(set(first.saved) - set(self.saved))
        peaks = " / ".join(f"{peak / 2**30:.3f}" for peak in self.peaks)
        return f"| {self.name} | {len(self.saved)} | {added} | {gone} | {self.gathers[0]} | {self.gathers[1]} | {peaks} |"

    def wrong(self, first: Row) -> list[str]:
        found = []
        if set(self.saved) != set(first.saved):
            found.append("the saved values differ")
        if any(now > then for now, then in zip(self.gathers, first.gathers, strict=True)):
            found.append("more gathers")
        for kind, now, then, live, known in zip(("forward", "backward"), self.peaks, first.peaks, self.live, first.live, strict=True):
            if now > then * 1.001:
                new = {name: size for name, size in live.items() if known.get(name) != size}
                found.append(f"{kind} peaks at {now} B, not {then} B; there now: {dict(list(new.items())[:8])}")
        return found


def row(fxopt: Fxopt, name: str, forward: GraphModule, backward: GraphModule, count: int, folder: pathlib.Path) -> Row:
    peaks, live = [], []
    for kind, half_of in (("forward", forward), ("backward", backward)):
        path = folder / f"{kind}.json"
        # provenance of the pair that it was read from
        vars(half_of.graph).pop("_fxopt_provenance", None)
        bridge.save(half_of, path, kind=kind)
        graph = fxopt.run("mem", str(path), "--top", "40")["files"][0]["graphs"][0]
        device = max(graph["devices"], key=lambda each: each["ideal"]["peak_bytes"])
        peaks.append(device["ideal"]["peak_bytes"])
        live.append({item["node"]: item["bytes"] for item in device["top"]})
    return Row(name, saved_names(forward, count), (gathers(forward), gathers(backward)), (peaks[0], peaks[1]), (live[0], live[1]))


def pair_of(path: pathlib.Path, count: int, folder: pathlib.Path) -> Pair:
    module = json.loads(path.read_text(encoding="utf-8"))["module"]
    outputs = next(graph for graph in module["graphs"] if graph.get("kind") == "GRAPH_KIND_BACKWARD").get("outputs", [])
    backward = half(module, "BACKWARD", folder)
    leaves = outputs_of(backward)
    gradients = {spec["of"]: i for i, spec in enumerate(outputs) if "of" in spec and isinstance(leaves[i], Node)}
    return Pair(half(module, "FORWARD", folder), backward, count, gradients)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--first", default=FIRST, metavar="PASSES")
    parser.add_argument("graph", nargs="?", type=pathlib.Path, default=ROOT / "testdata" / "llama8b_joint.pb.zst")
    options = parser.parse_args()
    fxopt = Fxopt(options.fxopt)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        module = as_json(fxopt, options.graph, folder)
        count = int(module["graphs"][0]["num_forward_outputs"])
        if module.get("groups"):
            init_fake_groups(module)
        first_path = folder / "first.json"
        fxopt.opt(options.graph, first_path, options.first, "--strict")
        first = pair_of(first_path, count, folder)
        print("| compilation | saved | not saved by the first | gone | gathers in forward | in backward | peaks in GiB |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        before = row(fxopt, "first", first.forward, first.backward, count, folder)
        print(before.text(None), flush=True)
        again, told = second_trace(first)
        again_path, second_path = folder / "again.json", folder / "second.json"
        bridge.save(again, again_path, **told)
        fxopt.opt(again_path, second_path, "partition{mode=save-all}", "--strict")
        second = pair_of(second_path, count, folder)
        rows = [row(fxopt, "second, save-all", second.forward, second.backward, count, folder)]
        print(rows[-1].text(before), flush=True)
        halves = partition(second_trace(first)[0], num_fwd_outputs=count, cut="mode=save-all", fxopt=fxopt.program)
        rows.append(row(fxopt, "second, fxopt.partition", *halves, count, folder))
        print(rows[-1].text(before), flush=True)
        for name, theirs in (("default", default_partition), ("min-cut", min_cut_rematerialization_partition)):
            joint = second_trace(first)[0]
            halves = theirs(joint, None, num_fwd_outputs=count)
            print(row(fxopt, f"second, PyTorch's {name}", *halves, count, folder).text(before), flush=True)
    wrong = [f"{each.name}: {text}" for each in rows for text in each.wrong(before)]
    print("\n".join(wrong) or "save-all saves the same values, gathers no more, and peaks no higher than the first compilation")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
