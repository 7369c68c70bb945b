#!/usr/bin/env python3
"""Executes graphs in other orders, permitted and forbidden ones by `fxopt show --dependences`.

    scripts/peers/orders.py [--fxopt PROGRAM] [--seeds A:B] [--orders N] [--jobs N] [GRAPH...]

Without GRAPH, runs the random programs of differential.py; otherwise graph files, executed on the
CPU with random inputs. Permitted orders are drawn here, from the listed dependences alone: each
must give the original's results bit by bit, and issue the same collectives on each group. Then
neighbours without a data edge are swapped, one pair at a time. The script counts how many swaps
fxopt permits, why it refuses the others, and how many refused swaps change nothing that PyTorch
shows. A swap that changes something and is not refused is an error. Needs torch. Exits with 1 if an
order was wrong.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from command import command_line, seed_range
import torch
from differential_parts import campaign, files, observe
from differential_parts.campaign import Subject
from differential_parts.observe import Seen
from differential_parts.programs import Program, Unusable
from fxopt import bridge
from fxopt_program import Fxopt
from torch.fx import Graph, GraphModule
from torch.fx.graph import CodeGen
from torch.utils import _pytree as pytree

Dependences = dict[str, dict[str, str]]  # node -> the nodes that it must follow -> why
CHUNK = 25  # seeds of one process, which an odd program may end
SECONDS = 1200
SWAPS_OF_A_REASON = 6  # per program
# Reasons that one execution cannot show: other ranks, streams, other effects or writes of an
# operator.
UNSEEN = ("opaque", "collective", "effect", "event", "control", "mode")


def dependences_of(fxopt: Fxopt, path: pathlib.Path, graph: str) -> Dependences:
    result = fxopt.run("show", str(path), "--dependences", "--graph", graph)["files"][0]["nodes"]
    return {row["name"]: {item["node"]: item["why"] for item in row["follows"]} for row in result}


def in_order(graph_module: GraphModule, names: Sequence[str]) -> GraphModule:
    """The same nodes in this order, on the same attributes."""
    graph = Graph()
    nodes = {node.name: node for node in graph_module.graph.nodes}
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for name in names:
        copies[nodes[name]] = graph.node_copy(nodes[name], copies.__getitem__)
    graph.set_codegen(graph_module.graph._codegen)
    return GraphModule(graph_module, graph)


def random_order(names: Sequence[str], inputs: Sequence[str], follows: Dependences, dice: random.Random) -> list[str]:
    """Placeholders first, the output last, in between any permitted node; mostly far from its
    original place."""
    waits = {name: len(follows[name]) for name in names}
    followed = collections.defaultdict(list)
    for name in names:
        for other in follows[name]:
            followed[other].append(name)
    order, ready = [], []
    far = dice.random()

    def put(name: str) -> None:
        order.append(name)
        for other in followed[name]:
            waits[other] -= 1
            if waits[other] == 0 and other not in inputs and other != names[-1]:
                ready.append(other)

    ready += [name for name in names[:-1] if waits[name] == 0 and name not in inputs]
    for name in inputs:
        put(name)
    while ready:
        at = dice.randrange(len(ready)) if dice.random() < far else len(ready) - 1
        put(ready.pop(at))
    return [*order, names[-1]]


def by_group(seen: Seen) -> dict[str, list[str]]:
    """The collectives launched on each group, in order."""
    groups = collections.defaultdict(list)
    for call in seen.collectives:
        groups[call.rsplit("'", 2)[-2] if "'" in call else ""].append(call)
    return groups


def compare(before: Seen, after: Seen) -> list[str]:
    lines = observe.differences(before, after)
    if before.error is None and after.error is None and by_group(before) != by_group(after):
        lines.append("collectives of a group")
    return lines


class Recorder(torch.fx.Interpreter):
    """Executes a graph and keeps each node's result when it runs."""

    def __init__(self, graph_module: GraphModule) -> None:
        super().__init__(graph_module, garbage_collect_values=False)
        self.graph_module = graph_module
        self.results: dict[str, object] = {}

    def run_node(self, node: torch.fx.Node) -> object:
        result = super().run_node(node)
        leaves = pytree.tree_leaves(result) if node.op.startswith("call_") else []
        self.results[node.name] = [observe.described(leaf) for leaf in leaves]
        return result


class Judge:
    """Checks orders of one program."""

    def __init__(self, name: str, program: Program, seen: Seen, follows: Dependences) -> None:
        self.name, self.program, self.seen = name, program, seen
        self.graph_module = program.graph_module
        self.nodes = {node.name: node for node in self.graph_module.graph.nodes}
        self.names = [node.name for node in self.graph_module.graph.nodes]
        self.follows = {name: follows[name] for name in self.names}
        self.inputs = [node.name for node in self.graph_module.graph.nodes if node.op == "placeholder"]

    def differences(self, order: Sequence[str]) -> list[str]:
        return compare(self.seen, campaign.run_graph(self.program, in_order(self.graph_module, order)))

    def watched(self, order: Sequence[str]) -> tuple[Seen, dict[str, object]]:
        """Executes an order; returns each node's result as well."""
        recorder = Recorder(in_order(self.graph_module, order))
        seen = campaign.run_graph(self.program, recorder.graph_module, recorder.run)
        return seen, recorder.results

    def judge(self, orders: int, seed: int) -> dict[str, object]:
        dice = random.Random(seed)
        wrong, distinct = [], set()
        for _ in range(orders):
            order = random_order(self.names, self.inputs, self.follows, dice)
            if tuple(order) in distinct:
                continue
            distinct.add(tuple(order))
            lines = self.differences(order)
            if lines:
                wrong.append({"program": self.name, "order": order, "differences": lines})
        return {"orders": orders, "distinct": len(distinct), "wrong": wrong, **self.swaps(dice)}

    def swaps(self, dice: random.Random) -> dict[str, object]:
        """Neighbours whose second does not read the first: permitted, refused, and the results of
        tried swaps."""
        pairs: dict[str, list[int]] = collections.defaultdict(list)
        for at in range(len(self.names) - 2):
            first, second = self.names[at : at + 2]
            if first in self.inputs or second in self.inputs:
                continue
            why = self.follows[second].get(first, "permitted")
            if why != "value":
                pairs["opaque" if why == "storage" and self.is_opaque(first, second) else why].append(at)
        tried, same, wrong, unchanged = collections.Counter(), collections.Counter(), [], []
        seen, results = self.watched(self.names)
        for why, places in pairs.items():
            for at in dice.sample(places, min(len(places), SWAPS_OF_A_REASON)):
                order = [*self.names[:at], self.names[at + 1], self.names[at], *self.names[at + 2 :]]
                after, now = self.watched(order)
                lines = compare(seen, after)
                tried[why] += 1
                is_same = not lines and (results == now or why == "permitted")
                same[why] += is_same
                if is_same and why != "permitted":
                    unchanged.append(f"{why}: {self.target(at)} | {self.target(at + 1)}")
                if lines and why == "permitted":
                    wrong.append({"program": self.name, "order": order, "differences": lines})
        return {"pairs": {why: len(places) for why, places in pairs.items()}, "tried": tried, "same": same, "unchanged": unchanged, "wrong swaps": wrong}

    def is_opaque(self, *names: str) -> bool:
        """Whether one of the calls is no operator with a schema, so that its writes are unknown."""
        return any(not isinstance(self.nodes[name].target, torch._ops.OpOverload) for name in names)

    def target(self, at: int) -> str:
        node = self.nodes[self.names[at]]
        return node.target if isinstance(node.target, str) else str(getattr(node.target, "__name__", node.target))


def of_seeds(first: int, last: int, fxopt: Fxopt, orders: int) -> Iterator[dict[str, object]]:
    for seed in range(first, last):
        with tempfile.TemporaryDirectory() as folder:
            try:
                subject = Subject(seed, fxopt.program, pathlib.Path(folder))
            except Unusable as error:
                yield {"skipped": str(error)}
                continue
            source = subject.optimizer.source
            graph = json.loads(source.read_text(encoding="utf-8"))["module"]["graphs"][0]["name"]
            follows = dependences_of(fxopt, source, graph)
            yield Judge(f"seed {seed}", subject.program, subject.seen, follows).judge(orders, seed)


def of_file(path: pathlib.Path, fxopt: Fxopt, orders: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "before.json"
        try:
            given = bridge.read_module(path, fxopt.program)
            if "groups" in given:
                bridge.init_fake_groups(given)
            module, program = files.runnable(path, source, fxopt.program)
        except Unusable as error:
            return {"skipped": f"{path.name}: {error}"}
        graph_module = program.graph_module
        # inputs are passed as placeholders are, one after the other
        graph_module.graph.set_codegen(CodeGen())
        graph_module.recompile()
        seen = campaign.run_graph(program, graph_module)
        if seen.error is not None:
            return {"skipped": f"{path.name}: {seen.error}"}
        if observe.differences(seen, campaign.run_graph(program, graph_module)):
            return {"skipped": f"{path.name}: two runs of the original differ"}
        graph = module["graphs"][0]["name"]
        return Judge(path.name, program, seen, dependences_of(fxopt, source, graph)).judge(orders, 1)


def children(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Results of processes, each for a few seeds or for one file."""
    first, last = options.seeds
    tasks = [[str(path)] for path in options.graphs] or [
        ["--seeds", f"{at}:{min(at + CHUNK, last)}"] for at in range(first, last, CHUNK)
    ]
    told = [sys.executable, __file__, "--child", "--fxopt", options.fxopt.program, "--orders", str(options.orders)]
    running: list[tuple[list[str], subprocess.Popen]] = []
    while tasks or running:
        while tasks and len(running) < options.jobs:
            task = tasks.pop(0)
            running.append((task, subprocess.Popen([*told, *task], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)))
        task, process = running.pop(0)
        try:
            text, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
        for line in text.splitlines():
            if line.startswith("{"):
                yield json.loads(line)
        if process.returncode != 0:
            yield {"skipped": f"the process ended with {process.returncode}"}


def report(results: Sequence[Mapping]) -> int:
    done = [result for result in results if "skipped" not in result]
    skipped = collections.Counter(result["skipped"] for result in results if "skipped" in result)
    wrong = [item for result in done for item in [*result["wrong"], *result["wrong swaps"]]]
    orders, distinct = (sum(result[key] for result in done) for key in ("orders", "distinct"))
    print(f"{len(wrong)} wrong of {orders} permitted orders ({distinct} different ones) of {len(done)} graphs")
    for item in wrong[:10]:
        print(f"  {item['program']}: {'; '.join(item['differences'][:3])}")
    pairs, tried, same = (collections.Counter() for _ in range(3))
    for result in done:
        for counter, key in ((pairs, "pairs"), (tried, "tried"), (same, "same")):
            counter.update(result[key])
    total = sum(pairs.values())
    print(f"\nneighbours without a data edge: {total}\n\n{'':12}{'pairs':>8}{'share':>8}{'tried':>8}{'no change':>11}{'share':>8}")
    for why, count in pairs.most_common():
        share = f"{same[why] / tried[why]:.1%}" if tried[why] else ""
        print(f"{why:12}{count:8}{count / total:8.1%}{tried[why]:8}{same[why]:11}{share:>8}{'  not shown by one execution' if why in UNSEEN else ''}")
    refused = sum(tried[why] - same[why] for why in tried if why != "permitted")
    print(f"\nswaps that change what PyTorch gives: {refused} refused, {tried['permitted'] - same['permitted']} permitted")
    unchanged = collections.Counter(line for result in done for line in result["unchanged"])
    for line, count in unchanged.most_common(25):
        print(f"{count:8}  refused, and nothing changes: {line}")
    for why, count in skipped.most_common(8):
        print(f"{count:8}  skipped: {why}")
    return 1 if wrong else 0


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("graphs", nargs="*", type=pathlib.Path, metavar="GRAPH", help="graph files (default: random programs)")
    parser.add_argument("--seeds", type=seed_range, default=(0, 1400), metavar="A:B", help="random programs from A up to B (default: 0:1400)")
    parser.add_argument("--orders", type=int, default=100, metavar="N", help="permitted orders of each graph (default: 100)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.fxopt = Fxopt(options.fxopt)
    if not options.child:
        return report(list(children(options)))
    campaign.prepare_process()
    found = (
        (of_file(path, options.fxopt, options.orders) for path in options.graphs)
        if options.graphs
        else of_seeds(*options.seeds, options.fxopt, options.orders)
    )
    for result in found:
        print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
