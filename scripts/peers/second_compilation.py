#!/usr/bin/env python3
"""A module compiled twice saves the same values twice, or does not: partition's marks against PyTorch's second min-cut.

    scripts/peers/second_compilation.py [--fxopt PROGRAM] [--first PASSES] [GRAPH]

The first compilation: GRAPH (default: llama8b_joint of testdata, 128 ranks), by PASSES, which end in partition. The pair becomes
an autograd function, as autoparallel wraps what it has compiled, and AOTAutograd traces a step of it on fake tensors, nodes'
metadata kept. The second compilation: that joint graph, by partition{mode=save-all}, and by PyTorch's min-cut partitioner.
Printed for each: gathers in forward and in backward, values saved and those that the first compilation did not save or that are
gone, by the names they had there; peaks of both graphs. Exits with 1 where save-all saves another set. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(ROOT / "scripts")]

import torch  # noqa: E402
from fxopt import bridge  # noqa: E402
from fxopt_program import Fxopt  # noqa: E402
from partitions import half  # noqa: E402
from step_memory import as_json, inputs_of, outputs_of  # noqa: E402
from fxopt.reader import init_fake_groups  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch._functorch.partitioners import min_cut_rematerialization_partition  # noqa: E402
from torch.fx import GraphModule, Interpreter, Node  # noqa: E402
from traces import routes  # noqa: E402

Json = dict[str, Any]
FIRST = "fsdp-gathers,partition{mode=min-cut,mark-saved=true}"


def is_saved(node: object) -> bool:
    return isinstance(node, Node) and node.op == "call_function"


def saved_names(forward: GraphModule, count: int) -> list[str]:
    """What the values that forward saves were called in the first compilation; parameters and other inputs left out."""
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
    count: int  # of forward's outputs that are the user's
    gradients: dict[str, int]  # of these inputs: the output of backward


class Wrapped(nn.Module):
    """The pair as one differentiable function of its tensors; other inputs are what they are."""

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


def peaks(fxopt: Fxopt, path: pathlib.Path) -> str:
    found = []
    for kind in ("forward", "backward"):
        graph = fxopt.run("mem", str(path), "--graph", kind)["files"][0]["graphs"][0]
        found.append(max(device["ideal"]["peak_bytes"] for device in graph["devices"]) / 2**30)
    return " / ".join(f"{value:.2f}" for value in found)


def row(name: str, forward: GraphModule, backward: GraphModule, count: int, first: Iterable[str] | None) -> tuple[str, bool]:
    names = saved_names(forward, count)
    added = gone = 0
    if first is not None:
        added, gone = len(set(names) - set(first)), len(set(first) - set(names))
    return (
        f"| {name} | {len(names)} | {added} | {gone} | {gathers(forward)} | {gathers(backward)} |",
        added + gone > 0,
    )


def pair_of(path: pathlib.Path, count: int, folder: pathlib.Path) -> Pair:
    module = json.loads(path.read_text(encoding="utf-8"))["module"]
    outputs = next(graph for graph in module["graphs"] if graph.get("kind") == "GRAPH_KIND_BACKWARD").get("outputs", [])
    backward = half(module, "BACKWARD", folder)
    leaves = outputs_of(backward)
    gradients = {spec["of"]: i for i, spec in enumerate(outputs) if "of" in spec and isinstance(leaves[i], Node)}
    return Pair(half(module, "FORWARD", folder), backward, count, gradients)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fxopt", default=None)
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
        print("| compilation | saved | not saved by the first | gone | gathers in forward | in backward |")
        print("|---|---|---|---|---|---|")
        known = saved_names(first.forward, count)
        print(row("first", first.forward, first.backward, count, None)[0], flush=True)
        again, told = second_trace(first)
        again_path, second_path = folder / "again.json", folder / "second.json"
        bridge.save(again, again_path, **told)
        fxopt.opt(again_path, second_path, "partition{mode=save-all}", "--strict")
        second = pair_of(second_path, count, folder)
        text, differs = row("second, save-all", second.forward, second.backward, count, known)
        print(text, flush=True)
        theirs = min_cut_rematerialization_partition(again, None, num_fwd_outputs=count)
        print(row("second, PyTorch's min-cut", *theirs, count, known)[0], flush=True)
        for path in (first_path, second_path):
            print(f"peaks of forward / backward, {path.stem}: {peaks(fxopt, path)} GiB")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
