#!/usr/bin/env python3
"""Sharded graphs before and after passes, executed on all ranks of a process group of threads.

    scripts/peers/threaded_ranks.py [--fxopt PROGRAM] [--passes PIPELINE]... [--seeds N] [NAME...]

NAME is a sharded twin of testdata, or the path of a file of one: small, on the CPU, traced for one rank of few. Every rank runs that
graph on data of its own, drawn by seed and rank: the program is one that no model is, and its collectives are real. A group that
the graph knows by the ranks of the traced one becomes, for the others, the same group shifted, so that the groups of one name part
all ranks. Outputs of every rank before and after are to be equal bit by bit; of reduce-scatters and all-reduces that are bucketed
the largest distance in units of last place is printed, and must not be above --ulps (default: 0; the group of threads adds rank by
rank, so that there the order of sums stays). Draws: every rank has a generator of its own.

--plant exchanges parts of equal sizes within each bucket, in what the passes made: then every row that has some must differ.

Exits with 1 where something differs, with 2 where what was planted goes unseen. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import copy
import operator
import pathlib
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(ROOT / "scripts")]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from bound_values import BoundGraph  # noqa: E402
from device_inputs import enliven, is_telling, make_inputs  # noqa: E402
from fxopt_program import Fxopt  # noqa: E402
from memory import load, name_of  # noqa: E402
from partitions import file_of, known_as  # noqa: E402
from step_memory import as_json, with_groups  # noqa: E402
from torch.fx import GraphModule, Interpreter  # noqa: E402
from torch.testing._internal.distributed import multi_threaded_pg as threads  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

Json = dict[str, Any]
NAMES = ("llama8b_flb_twin", "llama8b_joint_twin", "deepseek16b_twin")
PASSES = (
    "bucket", "bucket{all-gather=4KiB}", "bucket{groups=all}", "bucket{compat=torch}",
    "bucket{reduce-scatter=200MiB,all-reduce=200MiB,groups=all}", "cse,bucket{groups=all,reduce-scatter=16KiB}",
)  # fmt: skip
SECONDS = 300
INTEGERS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}


def shifted(ranks: list[int], world: int) -> list[list[int]]:
    """The group, and the same shifted, which together are all ranks."""
    parts: list[list[int]] = []
    for rank in range(world):
        if not any(rank in part for part in parts):
            parts.append([rank - ranks[0] + other for other in ranks])
    if sorted(rank for part in parts for rank in part) != list(range(world)):
        raise ValueError(f"the ranks {ranks} do not part {world} ranks")
    return parts


def on_every_rank(world: int, work: Callable[[int], object]) -> list[object]:
    """What each rank gives. RuntimeError with the first that failed."""
    if dist.is_initialized():
        dist.destroy_process_group()
    threads._install_threaded_pg()
    torch._C._distributed_c10d._set_thread_isolation_mode(True)
    store, results, errors = dist.HashStore(), [None] * world, []

    def run(rank: int) -> None:
        try:
            dist.init_process_group("threaded", rank=rank, world_size=world, store=store)
            results[rank] = work(rank)
        except Exception as error:  # noqa: BLE001  # whatever an operator raises is that rank's result
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


def groups_of(module: Json) -> dict[str, list[int]]:
    return {group["uid"]: [int(rank) for rank in group.get("ranks", ())] for group in module.get("groups", ())}


def with_names(graph_module: GraphModule, names: dict[str, str]) -> GraphModule:
    """A copy whose collectives run on the groups of these names."""
    graph = copy.deepcopy(graph_module.graph)
    for node in graph.nodes:
        if "c10d" in str(node.target):
            node.args = tuple(names.get(arg, arg) if isinstance(arg, str) else arg for arg in node.args)
    return GraphModule(graph_module, graph)


def outputs(graph_module: GraphModule, module: Json, world: int, seed: int) -> list[list[object]]:
    """Of every rank. Inputs and draws hang on seed and rank alone."""
    used = {str(arg) for node in graph_module.graph.nodes if "c10d" in str(node.target) for arg in node.args if isinstance(arg, str)}
    parts = {uid: shifted(ranks, world) for uid, ranks in groups_of(module).items() if uid in used and ranks}
    seeds = [seed * world + rank for rank in range(world)]
    given = [enliven(make_inputs(BoundGraph(graph_module), own), own) for own in seeds]

    def work(rank: int) -> list[object]:
        names = {}
        for uid, groups in sorted(parts.items()):
            for ranks in groups:
                group = dist.new_group(ranks, use_local_synchronization=False)
                if rank in ranks:
                    names[uid] = group.group_name
        result = Interpreter(with_names(graph_module, names)).run(*given[rank])
        return [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in tree_leaves(result)]

    return on_every_rank(world, work)


def distance(a: object, b: object) -> int | None:
    """In units of last place; nothing where they are no alike tensors."""
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


def has_draws(graph_module: GraphModule) -> bool:
    seeded = torch.Tag.nondeterministic_seeded
    return any(seeded in getattr(node.target, "tags", ()) for node in graph_module.graph.nodes)


def exchange_parts(graph_module: GraphModule) -> bool:
    """Of every bucket those of equal sizes, the first for the last and so on. Whether there are any."""
    alike: dict[object, list[torch.fx.Node]] = {}
    for node in graph_module.graph.nodes:
        if node.target is operator.getitem and node.args[0].target is torch.ops.aten.split_with_sizes.default:
            alike.setdefault((node.args[0], tuple(node.meta["val"].shape)), []).append(node)
    for nodes in alike.values():
        for node, args in zip(nodes, [node.args for node in reversed(nodes)]):
            node.args = args
    return any(len(nodes) > 1 for nodes in alike.values())


def judged(
    fxopt: Fxopt, name: str, passes: str, seeds: int, folder: pathlib.Path, *, plants: bool = False
) -> tuple[str, int | None]:
    """What came of it, in words; the distance."""
    module = with_groups(fxopt, name, folder)
    before = load(copy.deepcopy(module), folder)
    target = folder / "after.pb"
    report = fxopt.opt(file_of(name), target, passes, "--numerics", "reorders-reductions")
    after = load(as_json(fxopt, target, folder), folder)
    if plants and not exchange_parts(after):
        return "nothing to exchange", None
    world = max(max(ranks) for ranks in groups_of(module).values() if ranks) + 1
    counters = {key: value for step in report["passes"] for key, value in step["counters"].items()}
    most, telling = 0, 0
    for seed in range(seeds):
        own = outputs(before, module, world, seed)
        telling = max(telling, sum(map(is_telling, own[0])))
        if any(distance(a, b) != 0 for x, y in zip(own, outputs(before, module, world, seed)) for a, b in zip(x, y)):
            return f"{world} ranks: own runs differ", None if not has_draws(before) else 0
        found = outputs(after, module, world, seed)
        distances = [distance(a, b) for x, y in zip(own, found, strict=True) for a, b in zip(x, y, strict=True)]
        if None in distances:
            return f"{world} ranks: WRONG: output {distances.index(None)}", None
        most = max(most, *distances)
    told = f"{counters.get('bucketed', 0)} in {counters.get('buckets', 0)} buckets"
    return f"{world} ranks, {seeds} seeds, {told}: {len(own[0])} outputs, of which {telling} tell, at most {most} ulps apart", most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fxopt", metavar="PROGRAM")
    parser.add_argument("--passes", action="append", metavar="PIPELINE")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="of inputs (default: 2)")
    parser.add_argument("--ulps", type=int, default=0, metavar="N", help="that reductions may differ by (default: 0)")
    parser.add_argument("--plant", action="store_true", help="exchange parts of buckets, which must be seen")
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    options = parser.parse_args()
    fxopt, is_wrong = Fxopt(options.fxopt), False
    print("| graph | passes | result |\n|---|---|---|")
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            known = known_as(name, pathlib.Path(folder)) if pathlib.Path(name).exists() else name
            for passes in options.passes or PASSES:
                text, ulps = judged(fxopt, known, passes, options.seeds, pathlib.Path(folder), plants=options.plant)
                is_unlike = ulps is None or ulps > options.ulps
                is_wrong = is_wrong or is_unlike != options.plant
                print(f"| {name_of(pathlib.Path(name))} | `{passes}` | {text} |", flush=True)
    return (2 if options.plant else 1) if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
