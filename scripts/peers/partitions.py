#!/usr/bin/env python3
"""`partition` beside PyTorch's default_partition on joint graphs of testdata: what is saved, and what the two graphs compute.

    scripts/peers/partitions.py [--fxopt PROGRAM] [NAME...]

Compared by name and in order: what forward returns, what backward takes; the seconds of both, of fxopt with the start of the
program and the proof. Of fxopt: join(partition(graph)) and partition of that give the same lists. Twins run on the CPU: forward,
then backward on what it saves, against the joint graph with the same generator state; outputs and gradients bit by bit. A graph
whose own runs differ is not compared. Exits with 1 where something differs. Needs torch; no GPU.
"""

from __future__ import annotations

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(ROOT / "scripts")]

import torch  # noqa: E402
from bound_values import BoundGraph  # noqa: E402
from device_inputs import make_inputs  # noqa: E402
from fxopt_program import Fxopt  # noqa: E402
from memory import load  # noqa: E402
from step_memory import JOINT, asked, inputs_of, outputs_of, with_groups  # noqa: E402
from torch._functorch.partitioners import default_partition  # noqa: E402
from torch.fx import GraphModule, Interpreter, Node  # noqa: E402

Json = dict[str, Any]
NAMES = (*JOINT, *(f"{name}_twin" for name in JOINT))
Lists = tuple[list[str], list[str]]


def half(module: Json, kind: str, folder: pathlib.Path) -> GraphModule:
    """That graph of a pair."""
    own = copy.deepcopy(module)
    own["graphs"].sort(key=lambda graph: graph.get("kind") != f"GRAPH_KIND_{kind}")
    return load(own, folder)


def lists(forward: GraphModule, backward: GraphModule) -> Lists:
    leaves = [leaf.name if isinstance(leaf, Node) else repr(leaf) for leaf in outputs_of(forward)]
    return leaves, [node.name for node in inputs_of(backward)]


def by_fxopt(fxopt: Fxopt, name: str, passes: str, folder: pathlib.Path) -> tuple[GraphModule, GraphModule, float]:
    target = folder / "pair.json"
    start = time.perf_counter()
    source = ROOT / "testdata" / f"{name}.pb.zst"
    subprocess.run([fxopt.program, "opt", str(source), "-o", str(target), "--passes", passes, "--strict"], check=True)
    seconds = time.perf_counter() - start
    module = json.loads(target.read_text(encoding="utf-8"))["module"]
    return half(module, "FORWARD", folder), half(module, "BACKWARD", folder), seconds


def run(graph_module: GraphModule, values: list[object]) -> list[object]:
    return torch.utils._pytree.tree_leaves(Interpreter(graph_module).run(*values), is_leaf=lambda item: item is None)


def is_same(a: object, b: object) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a == b
    if a.shape != b.shape or a.stride() != b.stride() or a.dtype != b.dtype:
        return False
    return torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8))


def executed(joint: GraphModule, forward: GraphModule, backward: GraphModule, count: int) -> str:
    names = [node.name for node in inputs_of(joint)]
    given = dict(zip(names, make_inputs(BoundGraph(joint)), strict=True))

    def fresh() -> dict[str, object]:
        return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in given.items()}

    runs = []
    for _ in range(2):
        torch.manual_seed(0)
        runs.append(run(joint, list(fresh().values())))
    if not all(map(is_same, *runs)):
        return "own runs differ"
    torch.manual_seed(0)
    own = fresh()
    first = run(forward, [own[node.name] for node in inputs_of(forward)])
    saved = dict(zip([leaf.name for leaf in outputs_of(forward)[count:]], first[count:], strict=True))
    second = run(backward, [saved[node.name] if node.name in saved else own[node.name] for node in inputs_of(backward)])
    found = first[:count] + second
    wrong = [i for i, (a, b) in enumerate(zip(runs[0], found, strict=True)) if not is_same(a, b)]
    return f"{len(found)} equal" if not wrong else f"WRONG: outputs {wrong[:5]}"


def compared(fxopt: Fxopt, name: str, folder: pathlib.Path) -> tuple[str, bool]:
    module = with_groups(fxopt, name, folder)
    count = int(module["graphs"][0]["num_forward_outputs"])
    joint = load(copy.deepcopy(module), folder)
    start = time.perf_counter()
    theirs = lists(*default_partition(load(copy.deepcopy(module), folder), None, num_fwd_outputs=count))
    torch_seconds = time.perf_counter() - start
    forward, backward, seconds = by_fxopt(fxopt, name, "partition", folder)
    ours = lists(forward, backward)
    again = lists(*by_fxopt(fxopt, name, "partition,join,partition", folder)[:2])
    only = [sorted(set(a[0][count:]) ^ set(b[0][count:])) for a, b in ((theirs, ours), (ours, again))]
    same = "same lists" if ours == theirs else f"{len(only[0])} saved by one" if only[0] else "another order"
    back = "same" if ours == again else "differs"
    result = executed(joint, forward, backward, count) if name.endswith("_twin") else "-"
    row = f"| {name} | {len(joint.graph.nodes)} | {len(theirs[0]) - count} | {len(ours[0]) - count} | {same} | {back} | {result}"
    if only[0]:
        row += f" ({', '.join(only[0][:6])})"
    return f"{row} | {torch_seconds:.2f} | {seconds:.2f} |", back == "differs" or result.startswith("WRONG")


def main() -> int:
    options = asked(__doc__, NAMES)
    fxopt = Fxopt(options.fxopt)
    print(
        "| graph | nodes | saved, PyTorch | saved, fxopt | saved values and order | join, partition | executed | s, PyTorch | s, fxopt |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    is_wrong = False
    for name in options.names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            row, wrong = compared(fxopt, name, pathlib.Path(folder))
        is_wrong = is_wrong or wrong
        print(row, flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
