#!/usr/bin/env python3
"""`bucket` beside PyTorch's formers of buckets, and a check of what it writes, on sharded graphs.

    scripts/peers/buckets.py [--fxopt PROGRAM] [--caps MIB,...] [NAME...]

NAME is a graph of testdata, or the path of a file of one. At each cap, for each kind of collective: the members of every bucket of
bucket_fsdp_all_gather, bucket_fsdp_reduce_scatter and bucket_fsdp_all_reduce (torch/_inductor/fx_passes/fsdp.py of 2.15), which are
to be those of `bucket{compat=torch}`, bucket by bucket; how many buckets and members our own choice has on all groups
with `max-span=0,max-growth=-1`, as PyTorch's former knows neither span nor peak: of what its filters take, and of everything. Seconds: of PyTorch's formers and merges, which is what the pass does; of the pass;
of the program with proof, reading and writing.

The checker reads the written graph and the bytes of the members in the graph before, and nothing that the pass says of itself but
which collectives stand for which: no bucket above its cap; every member in one bucket, of one kind, group, reduction and dtype; every
node before its readers; every start waited for before it is read; the bytes that go in and come out are those of the members.

Exits with 1 where members differ, ours leaves more launches of what PyTorch's filters take (members less buckets are saved), or the checker finds something. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import copy
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(ROOT / "scripts")]

import torch  # noqa: E402
import torch._inductor.fx_passes.bucketing as bucketing  # noqa: E402
import torch._inductor.fx_passes.fsdp as fsdp  # noqa: E402
from fxopt_program import Fxopt  # noqa: E402
from memory import load, name_of  # noqa: E402
from partitions import known_as  # noqa: E402
from step_memory import as_json, with_groups  # noqa: E402
from torch.fx import GraphModule  # noqa: E402

Json = dict[str, Any]
NAMES = ("llama8b_flb", "llama8b_joint", "deepseek16b")
CAPS = (1, 25, 200, 2000)
KINDS = ("all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce")
ITEM_BYTES = {"FLOAT64": 8, "FLOAT32": 4, "BFLOAT16": 2, "FLOAT16": 2, "INT64": 8, "INT32": 4, "BOOL": 1, "INT8": 1, "UINT8": 1}


# ---- PyTorch


def by_torch(graph_module: GraphModule, cap: float) -> tuple[list[list[str]], set[str], float]:
    """The members of every bucket, by name; all that its filters take; the seconds of forming and merging."""
    found: list[list[str]] = []
    taken: set[str] = set()
    former = bucketing.greedy_bucket_collective_by_mb

    def noted(gm: GraphModule, cap_of: Any, is_taken: Any, key: Any, is_taken_wait: Any = None) -> list[list[torch.fx.Node]]:
        buckets = former(gm, cap_of, is_taken, key, is_taken_wait)
        waits = [node for node in gm.graph.nodes if bucketing.is_wait_tensor(node) and is_taken(node.args[0])]
        taken.update(node.args[0].name for node in waits if is_taken_wait is None or is_taken_wait(node))
        found.extend([node.name for node in bucket] for bucket in buckets)
        return buckets

    groups = fsdp_groups(graph_module)
    with mock.patch.object(bucketing, "greedy_bucket_collective_by_mb", noted):
        start = time.perf_counter()
        fsdp.bucket_fsdp_all_gather(graph_module, lambda _: cap, mode="default")
        fsdp.bucket_fsdp_reduce_scatter(graph_module, lambda _: cap, mode="default")
        fsdp.bucket_fsdp_all_reduce(graph_module, lambda _: cap, fsdp_groups=groups)
        seconds = time.perf_counter() - start
    return found, taken, seconds


def fsdp_groups(graph_module: GraphModule) -> Any:
    gathers = [node for node in graph_module.graph.nodes if bucketing.is_all_gather_into_tensor(node)]
    return torch.utils._ordered_set.OrderedSet(node.args[2] for node in gathers if fsdp.is_fsdp_all_gather(node))


# ---- fxopt


@dataclass
class Ours:
    buckets: list[list[str]]  # members by name
    seconds: float  # of the pass
    program_seconds: float
    module: Json


def by_fxopt(fxopt: Fxopt, name: str, options: str, before: Json, folder: pathlib.Path) -> Ours:
    target = folder / "bucketed.pb"
    source = pathlib.Path(name).with_name(f"{pathlib.Path(name).name}.pb.zst") if "/" in name else ROOT / "testdata" / f"{name}.pb.zst"
    start = time.perf_counter()
    report = fxopt.opt(source, target, f"bucket{{{options}}}", "--timing", "--numerics", "reorders-reductions")
    seconds = time.perf_counter() - start
    module = as_json(fxopt, target, folder)
    names = {node["uid"]: node["name"] for node in main_nodes(before)}
    members = [[names[uid] for uid in stands_for(node)] for node in main_nodes(module) if kind_of(node) and stands_for(node)]
    return Ours(members, report["passes"][0]["seconds"], seconds, module)


def main_nodes(module: Json) -> list[Json]:
    nodes: list[Json] = module["graphs"][0]["nodes"]
    return [node | {"uid": node.get("uid", "0")} for node in nodes]


def kind_of(node: Json) -> str | None:
    packet = str(node.get("target", "")).split(".")
    return packet[1] if packet[0] == "_c10d_functional" and len(packet) > 1 and packet[1] in KINDS else None


def stands_for(node: Json) -> list[str]:
    return [origin["uid"] for origin in node.get("origins", ()) if origin.get("pass") == "bucket"]


# ---- the checker


def tensor_of(node: Json) -> tuple[str, int]:
    """dtype and elements."""
    tensor, elements = node["value"]["tensor"], 1
    for size in tensor.get("sizes", ()):
        elements *= int(size["value"] if isinstance(size, dict) else size)
    return tensor["dtype"].removeprefix("DTYPE_"), elements


def bytes_of(node: Json) -> int:
    dtype, elements = tensor_of(node)
    return ITEM_BYTES[dtype] * elements


def inputs_of(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("node"), str):
            yield value["node"]
        for key, item in value.items():
            if key != "node":
                yield from inputs_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from inputs_of(item)


def read_of(node: Json) -> list[str]:
    return [*inputs_of(node.get("args", ())), *inputs_of(node.get("kwargs", ()))]


def literals_of(node: Json) -> list[str]:
    return [str(arg) for arg in node.get("args", ()) if "node" not in arg]


def broken(before: Json, after: Json, cap_bytes: int) -> list[str]:
    """What the written graph breaks, in words."""
    old = {node["uid"]: node for node in main_nodes(before)}
    old_by_name = {node["name"]: node for node in old.values()}
    nodes = {node["name"]: node for node in main_nodes(after)}
    lines, seen, where = [], set(), {}
    waits = set()
    for node in nodes.values():
        for name in read_of(node):
            if name not in seen:
                lines.append(f"{node['name']} reads {name}, which stands after it")
            is_wait = "wait_tensor" in str(node.get("target"))
            if name in nodes and kind_of(nodes[name]) and not is_wait and stands_for(nodes[name]):
                lines.append(f"{node['name']} reads {name} before a wait")
            if is_wait:
                waits.add(name)
        seen.add(node["name"])
    for node in nodes.values():
        kind, members = kind_of(node), [old[uid] for uid in stands_for(node) if uid in old]
        if kind is None or not members:
            continue
        name = node["name"]
        given = [old_by_name[read_of(member)[0]] for member in members]
        total = sum(max(bytes_of(member), bytes_of(source)) for member, source in zip(members, given, strict=True))
        if total > cap_bytes:
            lines.append(f"{name}: {total} B, and the cap is {cap_bytes} B")
        facts = {(kind_of(member), str(literals_of(member)), tensor_of(member)[0]) for member in members}
        if facts != {(kind, str(literals_of(node)), tensor_of(node)[0])}:
            lines.append(f"{name}: members of several kinds: {facts}")
        if bytes_of(node) != sum(map(bytes_of, members)):
            lines.append(f"{name}: gives other bytes than its members")
        if bytes_of(nodes[read_of(node)[0]]) != sum(map(bytes_of, given)):
            lines.append(f"{name}: is given other bytes than its members")
        if name not in waits:
            lines.append(f"{name}: nobody waits for it")
        for member in members:
            if member["uid"] in where:
                lines.append(f"{member['name']} is in {where[member['uid']]} and in {name}")
            where[member["uid"]] = name
    kept = {node["uid"] for node in nodes.values()}
    for uid, node in old.items():
        if kind_of(node) and (uid in kept) == (uid in where):
            lines.append(f"{node['name']} is {'lost' if uid not in kept else 'in a bucket and there, too'}")
    return lines


# ---- the table


def rows(fxopt: Fxopt, name: str, caps: list[float], folder: pathlib.Path) -> Iterator[tuple[str, bool]]:
    module = with_groups(fxopt, name, folder)
    for cap in caps:
        size = f"{int(cap * 1024)}KiB" if cap != int(cap) else f"{int(cap)}MiB"
        told = f"all-gather={size},reduce-scatter={size},all-reduce={size}"
        theirs, taken, seconds = by_torch(load(copy.deepcopy(module), folder), cap)
        twin = by_fxopt(fxopt, name, f"{told},compat=torch", module, folder)
        ours = by_fxopt(fxopt, name, f"{told},groups=all,max-span=0,max-growth=-1", module, folder)
        cells, is_wrong = [name_of(pathlib.Path(name)), f"{cap:g}"], False
        cells += [f"{len(found)} of {sum(map(len, found))}" for found in (theirs, twin.buckets)]
        is_same = sorted(map(sorted, theirs)) == sorted(map(sorted, twin.buckets))
        cells.append("same" if is_same else "differ")
        alike = [kept for bucket in ours.buckets if (kept := [member for member in bucket if member in taken])]
        cells += [f"{len(buckets)} of {sum(map(len, buckets))}" for buckets in (alike, ours.buckets)]
        found = [line for item in (twin, ours) for line in broken(module, item.module, int(cap * (1 << 20)))]
        cells.append("holds" if not found else "; ".join(found[:3]))
        cells += [f"{seconds:.2f}", f"{twin.seconds:.4f}", f"{twin.program_seconds:.3f}"]
        cells += [f"{seconds / twin.seconds:.0f}", f"{seconds / twin.program_seconds:.0f}"]
        saved = [sum(map(len, buckets)) - len(buckets) for buckets in (theirs, alike)]
        is_worse = saved[1] < saved[0]
        cells.append(f"{saved[0]}, {saved[1]}{' WORSE' if is_worse else ''}")
        is_wrong = not is_same or bool(found) or is_worse
        yield f"| {' | '.join(cells)} |", is_wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fxopt", metavar="PROGRAM")
    parser.add_argument("--caps", default=",".join(map(str, CAPS)), metavar="MIB,...", help=f"default: {CAPS}")
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    options = parser.parse_args()
    fxopt = Fxopt(options.fxopt)
    print(
        "| graph | MiB | PyTorch: buckets of members | compat=torch | members | ours, of what PyTorch's filters take | ours | checker"
        " | s, PyTorch | s, the pass | s, fxopt | ratio, pass | ratio | launches saved, PyTorch and ours |"
    )
    print(f"|{'---|' * 14}")
    is_wrong = False
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            source = name if name in NAMES or not pathlib.Path(name).exists() else known_as(name, pathlib.Path(folder))
            for row, wrong in rows(fxopt, source, [float(cap) for cap in options.caps.split(",")], pathlib.Path(folder)):
                is_wrong = is_wrong or wrong
                print(row, flush=True)
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
