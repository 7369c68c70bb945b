#!/usr/bin/env python3
"""Executes sharded graphs before and after passes, on all ranks of a process group of threads.

    scripts/peers/threaded_ranks.py [--fxopt PROGRAM] [--passes PIPELINE]... [--seeds N] [NAME...]

NAME is a sharded twin of testdata, or the path of such a graph file: small, on the CPU, traced for
one rank of few. Every rank runs that graph on its own data, drawn by seed and rank: the program is
no real model, but its collectives are real. A group is known by the ranks of the traced rank. The
other ranks use the same group, shifted, so that the groups of one name split all ranks.

NAME may also be a path with {rank} in it, such as ranks/llama8b_flb_twin_rank{rank}.pb: a file of
each rank from 0 on, as `make_testdata.py --rank` writes them. Then every rank runs its own graph,
with its own constants and groups, before and after passes that saw this graph alone. `fxopt ranks`
must report ok for the files before and after.

Outputs of every rank before and after must be equal bit by bit. For bucketed reduce-scatters and
all-reduces, the largest distance in units of last place is printed, and must not be above --ulps
(default: 0; the group of threads adds rank by rank, so that the order of sums stays). Draws: every
rank has its own generator.

--ring adds in the order of a ring, in which bucketed sums differ: element e of n, reduced over R
ranks, is in chunk c = e R / n, and is added up from rank c + 1 on, around to rank c, rounded each
time. Then distances are in units of last place of the largest element of the output, and the table
ring_ulps.json has their limits (no row: 0). --write-table writes the measured distances there.

--plant exchanges slices of equal sizes within each bucket, and runs gathers on a group of the same
ranks in another order if the file has one, in the output graphs: then every row with a place for it
must differ.

Exits with 1 if something differs, with 2 if a planted mistake is not seen. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import operator
import pathlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from command import command_line
import torch
import torch.distributed as dist
from bound_values import BoundGraph
from device_inputs import enliven, is_telling, make_inputs
from fxopt_program import Fxopt
from memory import load, name_of
from partitions import file_of, known_as
from step_memory import as_json, with_groups
from torch.fx import GraphModule, Interpreter
from torch.testing._internal.distributed import multi_threaded_pg as threads
from torch.utils._pytree import tree_leaves

Json = dict[str, Any]
Outputs = list[list[object]]  # by rank
NAMES = ("llama8b_flb_twin", "llama8b_joint_twin", "deepseek16b_twin")
PASSES = (
    "bucket", "bucket{all-gather=4KiB}", "bucket{groups=all}", "bucket{compat=torch}",
    "bucket{reduce-scatter=200MiB,all-reduce=200MiB,groups=all}", "cse,bucket{groups=all,reduce-scatter=16KiB}",
    "fuse-gathers,bucket{groups=all}", "alias-round-trips", "dedup-unshards{reductions=merge}", "compute-cap{max-consecutive=2}",
    "bucket{groups=all,form=out}", "bucket{reduce-scatter=200MiB,all-reduce=200MiB,groups=all,form=coalesced}",
)  # fmt: skip
REDUCTIONS = tuple(passes for passes in PASSES if "reduce" in passes or "reductions" in passes) + ("bucket{all-reduce=4KiB,groups=all}",)
TABLE = pathlib.Path(__file__).with_name("ring_ulps.json")
SECONDS = 300
INTEGERS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}


def shifted(ranks: list[int], world: int) -> list[list[int]]:
    """The group and its shifted copies, which together are all ranks."""
    parts: list[list[int]] = []
    for rank in range(world):
        if not any(rank in part for part in parts):
            parts.append([rank - ranks[0] + other for other in ranks])
    if sorted(rank for part in parts for rank in part) != list(range(world)):
        raise ValueError(f"the ranks {ranks} do not split {world} ranks evenly")
    return parts


def on_every_rank(world: int, work: Callable[[int], object]) -> list[object]:
    """The result of each rank. Raises RuntimeError with the first error of a rank."""
    if dist.is_initialized():
        dist.destroy_process_group()
    threads._install_threaded_pg()
    torch._C._distributed_c10d._set_thread_isolation_mode(True)
    store, results, errors = dist.HashStore(), [None] * world, []

    def run(rank: int) -> None:
        try:
            dist.init_process_group("threaded", rank=rank, world_size=world, store=store)
            results[rank] = work(rank)
        # any exception of an operator is that rank's result
        except Exception as error:  # noqa: BLE001
            errors.append(f"rank {rank}: {type(error).__name__}: {str(error)[:200]}")
            threads.ProcessLocalGroup.exception_handle(error)

    workers = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(world)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(SECONDS)
        if any(worker.is_alive() for worker in workers):
            errors.append(f"no end after {SECONDS} s")
    finally:
        torch._C._distributed_c10d._set_thread_isolation_mode(False)
        threads._uninstall_threaded_pg()
    if errors:
        raise RuntimeError(errors[0])
    return results


def added_from(parts: list[torch.Tensor], first: int) -> torch.Tensor:
    """Adds rank by rank, around the ring."""
    total = parts[first % len(parts)].clone()
    for step in range(1, len(parts)):
        total += parts[(first + step) % len(parts)]
    return total


@contextmanager
def sums_around_a_ring() -> Iterator[None]:
    sum_of, average = dist.ReduceOp.SUM, dist.ReduceOp.AVG
    by_rank = threads.AllReduce.work

    def all_reduce(self: Any, data: list[Any]) -> None:
        if self.op not in (sum_of, average):
            by_rank(self, data)
            return
        for i in range(len(data[0])):
            flat = [of_rank[i].detach().reshape(-1) for of_rank in data]
            chunks = [chunk for chunk in zip(*(each.tensor_split(len(flat)) for each in flat), strict=True)]
            total = torch.cat([added_from(list(chunk), c + 1) for c, chunk in enumerate(chunks)])
            total = total / len(flat) if self.op == average else total
            for of_rank in data:
                of_rank[i].detach().copy_(total.reshape(of_rank[i].shape))

    def reduce_scatter(self: Any, data: list[Any]) -> None:
        totals = [added_from([of_rank[1][0][c] for of_rank in data], c + 1) for c in range(len(data))]
        for of_rank, total in zip(data, totals, strict=True):
            of_rank[0][0].detach().copy_(total / len(data) if self.op == average else total)

    with mock.patch.object(threads.AllReduce, "work", torch.no_grad()(all_reduce)):
        with mock.patch.object(threads.ReduceScatter, "work", torch.no_grad()(reduce_scatter)):
            yield


def groups_of(module: Json) -> dict[str, list[int]]:
    return {group["uid"]: [int(rank) for rank in group.get("ranks", ())] for group in module.get("groups", ())}


def with_names(graph_module: GraphModule, names: dict[str, str]) -> GraphModule:
    """A copy whose collectives run on the groups of these names."""
    graph = copy.deepcopy(graph_module.graph)
    for node in graph.nodes:
        if "c10d" in str(node.target):
            node.args = tuple(names.get(arg, arg) if isinstance(arg, str) else arg for arg in node.args)
    return GraphModule(graph_module, graph)


def words_of_collectives(graph_module: GraphModule) -> set[str]:
    """String arguments of collectives, including the names of the groups that the graph uses."""
    calls = [node for node in graph_module.graph.nodes if "c10d" in str(node.target)]
    return {str(arg) for node in calls for arg in node.args if isinstance(arg, str)}


@dataclass(frozen=True)
class Program:
    """The graph of one rank, and the ranks of the groups that it names."""

    graph_module: GraphModule
    groups: dict[str, list[int]]

    @staticmethod
    def of(graph_module: GraphModule, groups: dict[str, list[int]]) -> Program:
        used = words_of_collectives(graph_module)
        return Program(graph_module, {uid: ranks for uid, ranks in groups.items() if uid in used and ranks})


def outputs(programs: list[Program], seed: int) -> Outputs:
    """Runs all programs. Inputs and draws depend only on seed and rank."""
    seeds = [seed * len(programs) + rank for rank in range(len(programs))]
    given = [enliven(make_inputs(BoundGraph(own.graph_module), seeded), seeded) for own, seeded in zip(programs, seeds)]
    groups = sorted({(uid, tuple(ranks)) for own in programs for uid, ranks in own.groups.items()})

    def work(rank: int) -> list[object]:
        own, names = programs[rank], {}
        for uid, ranks in groups:  # all ranks create them in one order, members or not
            group = dist.new_group(list(ranks), use_local_synchronization=False, sort_ranks=False)
            if list(ranks) == own.groups.get(uid):
                names[uid] = group.group_name
        result = Interpreter(with_names(own.graph_module, names)).run(*given[rank])
        return [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in tree_leaves(result)]

    return on_every_rank(len(programs), work)


def distance(a: object, b: object) -> int | None:
    """The distance in units of last place; None if they are not tensors of one shape and type."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return 0 if a == b else None
    if a.shape != b.shape or a.dtype != b.dtype:
        return None
    if a.contiguous().view(-1).view(torch.uint8).equal(b.contiguous().view(-1).view(torch.uint8)):
        return 0
    if a.dtype not in INTEGERS or not torch.equal(a.isnan(), b.isnan()):
        return None
    x, y = (value.contiguous().nan_to_num(0).view(INTEGERS[a.dtype]).long() for value in (a, b))
    least = torch.iinfo(INTEGERS[a.dtype]).min
    x, y = (torch.where(value < 0, least - value, value) for value in (x, y))
    return int((x - y).abs().max())


def distance_of_largest(a: object, b: object) -> int | None:
    """The distance in units of last place of the largest element, rounded up."""
    if distance(a, b) in (0, None) or not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return distance(a, b)
    x, y = (value.double().nan_to_num(0, 0, 0) for value in (a, b))
    return math.ceil(float((x - y).abs().max()) / (torch.finfo(a.dtype).eps * float(x.abs().max())))


def has_draws(graph_module: GraphModule) -> bool:
    seeded = torch.Tag.nondeterministic_seeded
    return any(seeded in getattr(node.target, "tags", ()) for node in graph_module.graph.nodes)


def exchange_parts(graph_module: GraphModule) -> bool:
    """Reverses the order of equally sized slices in every bucket. Returns whether any bucket has
    two."""
    alike: dict[object, list[torch.fx.Node]] = {}
    for node in graph_module.graph.nodes:
        if node.target is not operator.getitem:
            continue
        if node.args[0].target is torch.ops.aten.split_with_sizes.default or "coalesced" in str(node.args[0].target):
            alike.setdefault((node.args[0], tuple(node.meta["val"].shape)), []).append(node)
    for nodes in alike.values():
        for node, args in zip(nodes, [node.args for node in reversed(nodes)]):
            node.args = args
    return any(len(nodes) > 1 for nodes in alike.values())


def exchange_orders(graph_module: GraphModule, groups: dict[str, list[int]]) -> bool:
    """Runs gathers on a group of the same ranks in another order, if one exists. Returns whether
    any does."""
    found = False
    for node in graph_module.graph.nodes:
        if node.target is not torch.ops._c10d_functional.all_gather_into_tensor.default:
            continue
        ranks = groups.get(node.args[2], [])
        others = [uid for uid, other in groups.items() if sorted(other) == sorted(ranks) and other != ranks]
        if others:
            node.args, found = (*node.args[:2], others[0]), True
    return found


def files_of(name: str, folder: pathlib.Path) -> list[str]:
    """Names for file_of(): the graph for all ranks, or one for each rank."""
    if "{rank}" not in name:
        return [known_as(name, folder) if pathlib.Path(name).exists() else name]
    paths = []
    while pathlib.Path(path := name.replace("{rank}", str(len(paths)))).exists():
        paths.append(path)
    if not paths:
        raise ValueError(f"no file {path}")
    return [known_as(path, folder) for path in paths]


class Subject:
    """A sharded graph on all ranks: one file that every rank runs, or a file for each."""

    def __init__(self, fxopt: Fxopt, name: str, folder: pathlib.Path) -> None:
        self._fxopt, self._folder = fxopt, folder
        self.files = files_of(name, folder)
        modules, before = [], []
        for file in self.files:
            modules.append(with_groups(fxopt, file, folder))
            before.append(load(copy.deepcopy(modules[-1]), folder))
        self._groups = [groups_of(module) for module in modules]
        if "{rank}" in name:
            said = [(int(rank.get("rank", 0)), int(rank.get("world_size", 0))) for module in modules for rank in [module["rank"]]]
            if said != [(rank, len(said)) for rank in range(len(said))]:
                raise ValueError(f"{name}: the files record (rank, ranks) {said}")
            if conflict := self.conflict([file_of(file) for file in self.files]):
                raise ValueError(conflict)
        else:
            listed, used = self._groups[0], words_of_collectives(before[0])
            world = max(max(ranks) for ranks in listed.values() if ranks) + 1
            parts = {uid: shifted(ranks, world) for uid, ranks in listed.items() if ranks and uid in used}
            self._groups = [{uid: next(part for part in parts[uid] if rank in part) for uid in parts} for rank in range(world)]
        self.before = self.programs(before)
        self._known: dict[int, Outputs | None] = {}

    def programs(self, graph_modules: list[GraphModule]) -> list[Program]:
        """The program of every rank, from the graph of each file."""
        every = graph_modules * (len(self._groups) // len(graph_modules))
        return [Program.of(graph_module, groups) for graph_module, groups in zip(every, self._groups)]

    def conflict(self, paths: list[pathlib.Path]) -> str:
        """The error of `fxopt ranks` on these files; empty for a single file."""
        if len(self.files) == 1:
            return ""
        done = subprocess.run([self._fxopt.program, "ranks", *map(str, paths)], capture_output=True, text=True)
        return f"fxopt ranks exits with {done.returncode}: {done.stderr.strip()[:300]}" if done.returncode != 0 else ""

    def _add_groups(self, file: int, groups: dict[str, list[int]]) -> None:
        """Adds the groups that passes made."""
        new = {uid: ranks for uid, ranks in groups.items() if ranks and uid not in self._groups[file]}
        if len(self.files) > 1:
            self._groups[file].update(new)
            return
        for uid, ranks in new.items():
            for rank, of_rank in enumerate(self._groups):
                of_rank[uid] = next(part for part in shifted(ranks, len(self._groups)) if rank in part)

    def plant(self, graph_modules: list[GraphModule]) -> bool:
        """Makes a mistake wherever the graphs have a place for one."""
        groups = self._groups if len(graph_modules) > 1 else self._groups[:1]
        changed = [exchange_parts(module) | exchange_orders(module, of) for module, of in zip(graph_modules, groups)]
        return any(changed)

    def own(self, seed: int) -> Outputs | None:
        """The outputs before passes; None if a second run gives others."""
        if seed not in self._known:
            first, second = outputs(self.before, seed), outputs(self.before, seed)
            is_same = all(distance(a, b) == 0 for x, y in zip(first, second) for a, b in zip(x, y))
            self._known[seed] = first if is_same else None
        return self._known[seed]

    def after(self, passes: str) -> tuple[list[GraphModule], dict[str, int], str]:
        """The graph of each file after passes, the passes' counters on the first, and the error of
        `fxopt ranks`."""
        targets, found, counters = [], [], []
        for rank, file in enumerate(self.files):
            # makes the groups, which the loaded graph looks up
            with_groups(self._fxopt, file, self._folder)
            targets.append(self._folder / f"after{rank}.pb")
            report = self._fxopt.opt(file_of(file), targets[-1], passes, "--numerics", "reorders-reductions")
            counters.append({key: value for step in report["passes"] for key, value in step["counters"].items()})
            module = as_json(self._fxopt, targets[-1], self._folder)
            self._add_groups(rank, groups_of(module))
            found.append(load(module, self._folder))
        return found, counters[0], self.conflict(targets)


def judged(
    subject: Subject, passes: str, seeds: int, *, plants: bool = False, measure: Callable[[object, object], int | None] = distance
) -> tuple[str, int | None]:
    """The result in words; the distance."""
    found, counters, conflict = subject.after(passes)
    world = f"{len(subject.before)} ranks"
    if conflict:
        return f"{world}: WRONG: {conflict}", None
    if plants and not subject.plant(found):
        return "no place for a mistake", None
    most, telling = 0, 0
    for seed in range(seeds):
        own = subject.own(seed)
        if own is None:
            has_any = any(has_draws(program.graph_module) for program in subject.before)
            return f"{world}: its own runs differ", None if not has_any else 0
        telling = max(telling, sum(map(is_telling, own[0])))
        after = outputs(subject.programs(found), seed)
        distances = [[measure(a, b) for a, b in zip(x, y, strict=True)] for x, y in zip(own, after, strict=True)]
        for rank, of_rank in enumerate(distances):
            if None in of_rank:
                return f"{world}: WRONG: output {of_rank.index(None)} of rank {rank}", None
        most = max(most, *(value for of_rank in distances for value in of_rank))
    told = ", ".join(f"{value} {key}" for key, value in sorted(counters.items())) or "nothing changed"
    graphs = "a graph each" if len(subject.files) > 1 else "one graph"
    return (
        f"{world}, {graphs}, {seeds} seeds, {told}: {len(own[0])} outputs, {telling} finite, non-zero, at most {most} ulps apart",
        most,
    )


def shown(name: str) -> str:
    return name_of(pathlib.Path(name.replace("_rank{rank}", "")))


def compare_sums(fxopt: Fxopt, options: argparse.Namespace) -> int:
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    is_wrong = False
    print("| graph | passes | result | may be |\n|---|---|---|---|")
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            subject = Subject(fxopt, name, pathlib.Path(folder))
            row = table.setdefault(f"{shown(name)}, {len(subject.before)} ranks", {})
            for passes in options.passes or REDUCTIONS:
                text, ulps = judged(subject, passes, options.seeds, measure=distance_of_largest)
                if options.write_table and ulps is not None:
                    row[passes] = max(ulps, row.get(passes, 0))
                is_wrong = is_wrong or ulps is None or ulps > row.get(passes, 0)
                print(f"| {shown(name)} | `{passes}` | {text} | {row.get(passes, 0)} |", flush=True)
    if options.write_table:
        TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    return 1 if is_wrong else 0


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--passes", action="append", metavar="PIPELINE")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="number of input seeds (default: 2)")
    parser.add_argument("--ulps", type=int, default=0, metavar="N", help="limit for reductions (default: 0)")
    parser.add_argument("--plant", action="store_true", help="plant mistakes, which must be seen")
    parser.add_argument("--ring", action="store_true", help="add in the order of a ring")
    parser.add_argument("--write-table", action="store_true", help="with --ring: write measured distances as limits")
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    options = parser.parse_args()
    fxopt, is_wrong = Fxopt(options.fxopt), False
    if options.ring:
        with sums_around_a_ring():
            return compare_sums(fxopt, options)
    print("| graph | passes | result |\n|---|---|---|")
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            subject = Subject(fxopt, name, pathlib.Path(folder))
            for passes in options.passes or PASSES:
                text, ulps = judged(subject, passes, options.seeds, plants=options.plant)
                is_unlike = ulps is None or ulps > options.ulps
                is_wrong = is_wrong or is_unlike != options.plant
                print(f"| {shown(name)} | `{passes}` | {text} |", flush=True)
    return (2 if options.plant else 1) if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
