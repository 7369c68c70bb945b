#!/usr/bin/env python3
"""Compares `partition` with PyTorch's partitioners on joint graphs: saved values, results, cost.

    scripts/peers/partitions.py [--fxopt PROGRAM] [--table] [NAME...]

NAME is a joint graph of testdata, or the path of a graph file. default_partition is compared with
`partition{compat=torch}`, min_cut_rematerialization_partition with
`partition{mode=min-cut,compat=torch}`. Forward's outputs and backward's inputs must be equal by
name and in order. The value of the minimal cut, and the calls of both graphs in order, are compared
as well. Seconds are those of PyTorch's function, of fxopt with program start and proof, and of the
pass alone; the ratio is that of the first two.

For fxopt, join(partition(graph)) is partitioned again, by the same mode, or by save-all if the
first marked its saved values; both must give the same lists. `partition{mode=inference}` is
compared with the nodes that forward's outputs need, as in autoparallel's extract_forward_graph;
nodes with effects are added. Graphs called NAME_twin run on the CPU: forward, then backward on its
saved values, compared with the joint graph from the same generator state. Outputs and gradients are
compared bit by bit, and the finite, non-zero ones are counted. A graph that cannot run on made
inputs, or whose own runs differ, is not compared, and its row gives the reason.

--table compares by cost instead, and includes fxopt's own minimal cut: bytes of the storages that
are saved and are no inputs; FLOPs, calls and seconds of both graphs minus those of the joint graph;
peaks of the step. The difference is negative if a partitioner merges equal calls or drops unused
ones; default_partition leaves forward's draws in backward, unused. FLOPs, seconds (the least that
an H100 takes, collectives included) and peaks are those of `fxopt diff --step`, for PyTorch's pairs
too.

Exits with 1 if something differs, or if fxopt's minimal cut has a higher ideal peak or more FLOPs
than PyTorch's. Needs torch; no GPU.
"""

from __future__ import annotations

import copy
import operator
import pathlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

from command import ROOT, command_line
import torch
from bound_values import BoundGraph
from device_inputs import enliven, is_telling, make_inputs
from fxopt_program import Fxopt
from memory import first_words, load, name_of
from step_memory import JOINT, Pair, as_json, cut, inputs_of, outputs_of, with_groups
from torch._functorch import partitioners
from torch.fx import GraphModule, Interpreter, Node
from torch.utils._pytree import tree_leaves

Json = dict[str, Any]
Lists = tuple[list[str], list[str]]
Partition = Callable[..., tuple[GraphModule, GraphModule]]
NAMES = (*JOINT, *(f"{name}_twin" for name in JOINT))
DEFAULT, MIN_CUT = partitioners.default_partition, partitioners.min_cut_rematerialization_partition
SAME: dict[str, tuple[Partition, str]] = {
    "default": (DEFAULT, "mode=default,compat=torch"), "min-cut": (MIN_CUT, "mode=min-cut,compat=torch"),
}  # fmt: skip
CUTTERS: dict[str, Partition | str] = {
    "PyTorch default": DEFAULT, "PyTorch min-cut": MIN_CUT,
    "fxopt default": "partition", "fxopt min-cut": "partition{mode=min-cut}",
}  # fmt: skip
GIB = 1 << 30


def known_as(name: str, folder: pathlib.Path) -> str:
    """A name that with_groups() accepts: one of testdata, or a path without the ending, here of a
    link to the file."""
    if name in NAMES:
        return name
    source = pathlib.Path(name)
    stem = folder / name_of(source)
    stem.with_name(f"{stem.name}.pb.zst").symlink_to(source.resolve())
    return str(stem)


def file_of(name: str) -> pathlib.Path:
    return ROOT / "testdata" / f"{name}.pb.zst"


def half(module: Json, kind: str, folder: pathlib.Path) -> GraphModule:
    """The graph of that kind in a pair."""
    own = copy.deepcopy(module)
    own["graphs"].sort(key=lambda graph: graph.get("kind") != f"GRAPH_KIND_{kind}")
    return load(own, folder)


def lists(forward: GraphModule, backward: GraphModule) -> Lists:
    leaves = [leaf.name if isinstance(leaf, Node) else repr(leaf) for leaf in outputs_of(forward)]
    return leaves, [node.name for node in inputs_of(backward)]


def without_unread(of: Lists, backward: GraphModule, count: int) -> Lists:
    """The lists without saved values that backward does not read: PyTorch keeps operands of tagged
    collectives, and removes these collectives from backward afterwards."""
    unread = {node.name for node in inputs_of(backward) if not node.users} & set(of[0][count:])
    return of[0][:count] + [item for item in of[0][count:] if item not in unread], [item for item in of[1] if item not in unread]


@dataclass
class Ours:
    """A pair of graphs that fxopt made."""

    forward: GraphModule
    backward: GraphModule
    path: pathlib.Path
    seconds: float  # the whole program
    first_pass: Json  # the report on the first pass


def by_fxopt(fxopt: Fxopt, name: str, passes: str, folder: pathlib.Path) -> Ours:
    target = folder / "pair.pb"
    start = time.perf_counter()
    report = fxopt.opt(file_of(name), target, passes, "--strict", "--timing")
    seconds = time.perf_counter() - start
    module = as_json(fxopt, target, folder)
    return Ours(half(module, "FORWARD", folder), half(module, "BACKWARD", folder), target, seconds, report["passes"][0])


def static_inputs(module: Json) -> list[int]:
    """Places of the primals that AOTAutograd calls static: parameters, buffers, inputs with a fixed
    address."""
    inputs = [node.get("input", {}) for node in module["graphs"][0]["nodes"] if node["kind"] == "NODE_KIND_PLACEHOLDER"]
    primals = [spec for spec in inputs if spec.get("role") != "INPUT_ROLE_TANGENT"]
    roles = ("INPUT_ROLE_PARAMETER", "INPUT_ROLE_BUFFER")
    return [i for i, spec in enumerate(primals) if spec.get("static_address") or spec.get("role") in roles]


def order(graph_module: GraphModule) -> list[str]:
    """Its calls in order, except getitems, which PyTorch moves."""
    return [str(node.target) for node in graph_module.graph.nodes if node.op == "call_function" and node.target is not operator.getitem]


def compared_calls(theirs: GraphModule, ours: GraphModule) -> str:
    a, b = order(theirs), order(ours)
    others = (Counter(a) - Counter(b)) + (Counter(b) - Counter(a))
    return "same" if a == b else f"{others.total()} others" if others else "another order"


def by_torch(partition: Partition, joint: GraphModule, count: int) -> tuple[tuple[GraphModule, GraphModule], int | None, float]:
    """The pair, the value of the minimal cut if there is one, the seconds."""
    solve, cuts = partitioners.minimum_cut, []

    def noted(*args: object) -> object:
        result = solve(*args)
        cuts.append(round(result[0]))
        return result

    with mock.patch.object(partitioners, "minimum_cut", noted):
        start = time.perf_counter()
        pair = partition(joint, None, num_fwd_outputs=count)
        seconds = time.perf_counter() - start
    return pair, cuts[-1] if cuts else None, seconds


def run(graph_module: GraphModule, values: list[object]) -> list[object]:
    return tree_leaves(Interpreter(graph_module).run(*values), is_leaf=lambda item: item is None)


def is_same(a: object, b: object) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a == b
    if a.shape != b.shape or a.stride() != b.stride() or a.dtype != b.dtype:
        return False
    return torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8))


Run = Callable[[dict[str, object]], list[object]]  # on inputs by name


def executed(joint: GraphModule, ours: Run) -> str:
    """Compares the results of `ours` with the first outputs of the joint graph."""
    names = [node.name for node in inputs_of(joint)]
    made = make_inputs(BoundGraph(joint))
    lively = enliven(make_inputs(BoundGraph(joint)))

    def fresh() -> dict[str, object]:
        return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in given.items()}

    runs: list[list[object]] = []
    for values in (lively, made):
        given = dict(zip(names, values, strict=True))
        try:
            for _ in range(2):
                torch.manual_seed(0)
                runs.append(run(joint, list(fresh().values())))
            break
        # any error of an operator on inputs that are invalid for this graph
        except Exception as error:  # noqa: BLE001
            runs, failure = [], f"cannot run: {first_words(error)}"
    if not runs:
        return failure
    if not all(map(is_same, *runs)):
        return "its own runs differ"
    torch.manual_seed(0)
    found = ours(fresh())
    wrong = [i for i, (a, b) in enumerate(zip(runs[0], found)) if not is_same(a, b)]
    telling = sum(map(is_telling, found))
    return f"{len(found)} equal, {telling} finite and non-zero" if not wrong else f"WRONG: outputs {wrong[:5]}"


def executed_pair(joint: GraphModule, forward: GraphModule, backward: GraphModule, count: int) -> str:
    def ours(own: dict[str, object]) -> list[object]:
        first = run(forward, [own[node.name] for node in inputs_of(forward)])
        own |= dict(zip([leaf.name for leaf in outputs_of(forward)[count:]], first[count:], strict=True))
        return first[:count] + run(backward, [own[node.name] for node in inputs_of(backward)])

    return executed(joint, ours)


def compared(fxopt: Fxopt, name: str, folder: pathlib.Path) -> Iterator[tuple[str, bool]]:
    """Yields a row for each mode, and whether something differs."""
    module = with_groups(fxopt, name, folder)
    count = int(module["graphs"][0]["num_forward_outputs"])
    joint = load(copy.deepcopy(module), folder)
    for mode, (partition, options) in SAME.items():
        passes = f"partition{{{options}}}"
        partition = partial(partition, static_lifetime_input_indices=static_inputs(module))
        their_pair, their_cut, torch_seconds = by_torch(partition, load(copy.deepcopy(module), folder), count)
        pair = by_fxopt(fxopt, name, passes, folder)
        theirs = without_unread(lists(*their_pair), their_pair[1], count)
        num_unread = len(lists(*their_pair)[1]) - len(theirs[1])
        ours, our_cut = lists(pair.forward, pair.backward), pair.first_pass["notes"].get("cut")
        joined = by_fxopt(fxopt, name, f"{passes},join,partition{{compat=torch}}", folder)
        marked = f"partition{{{options},mark-saved=true}}"
        again = by_fxopt(fxopt, name, f"{marked},join,partition{{mode=save-all}}", folder)
        is_back = ours == lists(joined.forward, joined.backward) == lists(again.forward, again.backward)
        only = sorted(set(theirs[0][count:]) ^ set(ours[0][count:]))
        same = "same lists" if ours == theirs else "another order"
        if only:
            same = f"{len(only)} saved by one side only ({', '.join(only[:6])})"
        if num_unread > 0:
            same += f"; PyTorch saves {num_unread} more that backward does not read"
        result = executed_pair(joint, pair.forward, pair.backward, count) if name.endswith("_twin") else "-"
        cells = [pathlib.Path(name).name, mode, len(joint.graph.nodes), len(theirs[0]) - count, len(ours[0]) - count, same]
        cells += [compared_calls(a, b) for a, b in zip(their_pair, (pair.forward, pair.backward), strict=True)]
        cells += ["-" if value is None else value for value in (their_cut, our_cut)]
        cells += ["same" if is_back else "differs", result, f"{torch_seconds:.2f}", f"{pair.seconds:.3f}"]
        cells += [f"{pair.first_pass['seconds']:.4f}", f"{torch_seconds / pair.seconds:.0f}"]
        is_wrong = ours != theirs or their_cut != our_cut or not is_back or result.startswith("WRONG")
        yield f"| {' | '.join(map(str, cells))} |", is_wrong
    yield inference_row(fxopt, name, joint, count, folder)


def inference_row(fxopt: Fxopt, name: str, joint: GraphModule, count: int, folder: pathlib.Path) -> tuple[str, bool]:
    target = folder / "forward.pb"
    start = time.perf_counter()
    report = fxopt.opt(file_of(name), target, "partition{mode=inference}", "--strict", "--timing")
    seconds = time.perf_counter() - start
    ours = load(as_json(fxopt, target, folder), folder)
    kept = {leaf for leaf in outputs_of(joint)[:count] if isinstance(leaf, Node)}
    for node in reversed(joint.graph.nodes):
        kept |= set(node.all_input_nodes) if node in kept else set()
    theirs = {node.name for node in kept if node.op != "placeholder"}
    names = [node.name for node in ours.graph.nodes if node.op not in ("placeholder", "output")]
    lost, more = sorted(theirs - set(names)), [item for item in names if item not in theirs]
    same = f"LOST: {lost[:6]}" if lost else f"{len(more)} more ({', '.join(more[:4])})" if more else "same nodes"
    result = "-"
    if name.endswith("_twin"):
        result = executed(joint, lambda own: run(ours, [own[node.name] for node in inputs_of(ours)]))
    cells = [pathlib.Path(name).name, "inference", len(joint.graph.nodes), len(theirs), len(names), same, *"-----", result, "-"]
    cells += [f"{seconds:.3f}", f"{report['passes'][0]['seconds']:.4f}", "-"]
    return f"| {' | '.join(map(str, cells))} |", bool(lost) or result.startswith("WRONG")


def lists_table(fxopt: Fxopt, names: list[str]) -> bool:
    """Prints the table of saved values. Returns whether something differs."""
    with tempfile.TemporaryDirectory() as folder:  # PyTorch imports modules at its first cut
        list(compared(fxopt, NAMES[-1], pathlib.Path(folder)))
    print(
        "| graph | mode | nodes | saved, PyTorch | saved, fxopt | saved values and order"
        " | forward's calls | backward's calls | cut, PyTorch | cut, fxopt"
        " | join, partition, and save-all | executed | s, PyTorch | s, fxopt | s, the pass | ratio |"
    )
    print(f"|{'---|' * 16}")
    is_wrong = False
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            for row, wrong in compared(fxopt, known_as(name, pathlib.Path(folder)), pathlib.Path(folder)):
                is_wrong = is_wrong or wrong
                print(row, flush=True)
    return is_wrong


# ---- by cost


def calls(*graphs: GraphModule) -> int:
    return sum(node.op == "call_function" for graph in graphs for node in graph.graph.nodes)


def saved_bytes(pair: Pair) -> int:
    """Bytes of the storages of saved values that no input of forward has."""
    bound, leaves = BoundGraph(pair.forward), outputs_of(pair.forward)

    def storages(nodes: list[Node]) -> dict[int, int]:
        values = tree_leaves([bound.value(node.meta["val"]) for node in nodes])
        found = [value.untyped_storage() for value in values if isinstance(value, torch.Tensor)]
        return {storage._cdata: storage.nbytes() for storage in found}

    given = storages(inputs_of(pair.forward))
    return sum(size for key, size in storages([leaves[at] for at in pair.saved.values()]).items() if key not in given)


@dataclass
class Cost:
    """The cost of one step: a joint graph, or a pair."""

    calls: int
    flops: int
    seconds: float
    ideal: int  # peak of the device with the highest
    allocated: int  # 0 without an allocator
    saved: int = 0


def cost(fxopt: Fxopt, paths: list[pathlib.Path], graphs: list[GraphModule], saved: int = 0) -> Cost:
    found = fxopt.run("diff", "--step", *map(str, paths * 2), "--device", "h100")["graphs"][0]
    work = found["before"]["work"]
    seconds = (work["seconds"] or 0) + (work["collective_seconds"] or 0)
    peaks = [{each["metric"]: each["before"]["bytes"] for each in device["peaks"]} for device in found["devices"]]
    ideal, allocated = (max(device.get(metric, 0) for device in peaks) for metric in ("ideal", "allocated, classic"))
    return Cost(calls(*graphs), work["flops"], seconds, ideal, allocated, saved)


def costs(fxopt: Fxopt, name: str, folder: pathlib.Path) -> tuple[Cost, dict[str, Cost]]:
    """The costs of the joint graph, and of each partitioner's pair."""
    module = with_groups(fxopt, name, folder)
    static = static_inputs(module)
    joint = load(module, folder)
    found = {}
    for who, how in CUTTERS.items():
        if isinstance(how, str):
            ours = by_fxopt(fxopt, name, how, folder)
            pair, paths = Pair(ours.forward, ours.backward, []), [ours.path]
        else:
            pair, files = cut(fxopt, name, folder, partial(how, static_lifetime_input_indices=static))
            paths = files["roles"]
        found[who] = cost(fxopt, paths, [pair.forward, pair.backward], saved_bytes(pair))
    return cost(fxopt, [file_of(name)], [joint]), found


def verdict(name: str, theirs: Cost, ours: Cost) -> tuple[str, bool]:
    """A line of text, and whether fxopt is above PyTorch."""
    sides = {"peak": (ours.ideal, theirs.ideal), "FLOPs": (ours.flops, theirs.flops)}
    texts = [f"{what} {'below' if a < b else 'equal' if a == b else f'ABOVE ({a} > {b})'}" for what, (a, b) in sides.items()]
    return f"{name}: fxopt's min-cut beside PyTorch's: {', '.join(texts)}", any(a > b for a, b in sides.values())


def cost_table(fxopt: Fxopt, names: list[str]) -> bool:
    """Prints the table of costs. Returns whether fxopt's minimal cut is above PyTorch's."""
    print("| graph | cut by | saved, GiB | GFLOP again | calls again | ms again | ideal peak, GiB | allocated peak, GiB |")
    print(f"|---|---{'|--:' * 6}|")
    lines, is_above = [], False
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            joint, found = costs(fxopt, known_as(name, pathlib.Path(folder)), pathlib.Path(folder))
        shown = name_of(pathlib.Path(name))
        for who, each in found.items():
            cells = [f"{each.saved / GIB:.4g}", f"{(each.flops - joint.flops) / 1e9:.4g}", str(each.calls - joint.calls)]
            cells += [f"{(each.seconds - joint.seconds) * 1e3:.3f}", f"{each.ideal / GIB:.4g}"]
            cells += [f"{each.allocated / GIB:.4g}" if each.allocated else "-"]
            print(f"| {shown} | {who} | {' | '.join(cells)} |", flush=True)
        line, above = verdict(shown, found["PyTorch min-cut"], found["fxopt min-cut"])
        lines.append(line)
        is_above = is_above or above
    print("", *lines, sep="\n")
    return is_above


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--table", action="store_true", help="compare by cost")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a graph (default: {' '.join(NAMES)})")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in NAMES and not pathlib.Path(name).is_file()]:
        parser.error(f"neither a file nor one of {', '.join(NAMES)}: {', '.join(unknown)}")
    table = cost_table if options.table else lists_table
    return int(table(Fxopt(options.fxopt), options.names or list(NAMES)))


if __name__ == "__main__":
    sys.exit(main())
