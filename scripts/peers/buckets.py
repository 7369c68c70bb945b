#!/usr/bin/env python3
"""Compares `bucket` with PyTorch's bucket formers on sharded graphs, and checks the output.

    scripts/peers/buckets.py [--fxopt PROGRAM] [--caps MIB,...] [NAME...]

NAME is a graph of testdata, or the path of a graph file. Two things are compared at each cap, for
each kind of collective. First, the members of every bucket of bucket_fsdp_all_gather,
bucket_fsdp_reduce_scatter and bucket_fsdp_all_reduce (torch/_inductor/fx_passes/fsdp.py of 2.15),
which must be those of `bucket{compat=torch}`, bucket by bucket. Second, the numbers of buckets and
members that fxopt chooses on all groups with `max-span=0,max-growth=-1`, since PyTorch's former
knows neither span nor peak: among the collectives that its filters take, and among all.

Forms: whether the graphs make the same calls, not counting views, casts and clones: with `form=out`
and PyTorch's mode "default", and with `form=coalesced` for reduce-scatters and its mode
"coalesced". Not reported for files without a rank: their gathers stay functional.

Seconds: PyTorch's formers and merges, which do the work of the pass; the pass; and the program with
proof, reading and writing.

The checker reads the output graph and the bytes of the members in the input graph. It uses nothing
that the pass reports about itself except which collectives each bucket replaces. No bucket may be
above its cap. Every member is in one bucket, of one kind, group, reduction and dtype. Every node
comes before its users. Every start is waited for before it is read. Bytes in and out are those of
the members.

Exits with 1 if members or calls differ, if the checker finds something, or if fxopt leaves more
launches among the collectives that PyTorch's filters take (members minus buckets are saved). Needs
torch; no GPU.
"""

from __future__ import annotations

import copy
import pathlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from command import ROOT, command_line
import torch
import torch._inductor.fx_passes.bucketing as bucketing
import torch._inductor.fx_passes.fsdp as fsdp
from fxopt_program import Fxopt
from memory import load, name_of
from partitions import known_as
from step_memory import as_json, with_groups
from torch.fx import GraphModule

Json = dict[str, Any]
NAMES = ("llama8b_flb", "llama8b_joint", "deepseek16b")
CAPS = (1, 25, 200, 2000)
KINDS = ("all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce")
ITEM_BYTES = {"FLOAT64": 8, "FLOAT32": 4, "BFLOAT16": 2, "FLOAT16": 2, "INT64": 8, "INT32": 4, "BOOL": 1, "INT8": 1, "UINT8": 1}


# ---- PyTorch


def by_torch(graph_module: GraphModule, cap: float, mode: Any = "default") -> tuple[list[list[str]], set[str], float]:
    """The members of every bucket, by name; all collectives that its filters take; the seconds of
    forming and merging. Merges in place."""
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
    bucketing.logger.setLevel("WARNING")
    with mock.patch.object(bucketing, "greedy_bucket_collective_by_mb", noted):
        start = time.perf_counter()
        fsdp.bucket_fsdp_all_gather(graph_module, lambda _: cap, mode=mode)
        fsdp.bucket_fsdp_reduce_scatter(graph_module, lambda _: cap, mode=mode)
        if mode == "default":
            fsdp.bucket_fsdp_all_reduce(graph_module, lambda _: cap, fsdp_groups=groups)
        seconds = time.perf_counter() - start
    return found, taken, seconds


def fsdp_groups(graph_module: GraphModule) -> Any:
    gathers = [node for node in graph_module.graph.nodes if bucketing.is_all_gather_into_tensor(node)]
    return torch.utils._ordered_set.OrderedSet(node.args[2] for node in gathers if fsdp.is_fsdp_all_gather(node))


def calls_of_torch(graph_module: GraphModule) -> Counter[str]:
    return counted(str(node.target) for node in graph_module.graph.nodes if node.op == "call_function")


def counted(targets: Iterator[str]) -> Counter[str]:
    """Leaves out three kinds of calls. Views are written in more than one way. PyTorch leaves a
    cast to `copy_` if only a gather reads it. It omits clones where returned results come to share
    memory."""
    aside = ("view", "_unsafe_view", "reshape", "slice", "narrow", "split", "split_with_sizes", "_to_copy", "clone")
    return Counter(target for target in targets if target.count(".") == 2 and target.split(".")[1] not in aside)


# ---- fxopt


@dataclass
class Ours:
    buckets: list[list[str]]  # members by name
    seconds: float  # the pass alone
    program_seconds: float
    module: Json


def by_fxopt(fxopt: Fxopt, name: str, passes: str, before: Json, folder: pathlib.Path) -> Ours:
    target = folder / "bucketed.pb"
    source = pathlib.Path(name).with_name(f"{pathlib.Path(name).name}.pb.zst") if "/" in name else ROOT / "testdata" / f"{name}.pb.zst"
    start = time.perf_counter()
    report = fxopt.opt(source, target, passes, "--timing", "--numerics", "reorders-reductions")
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
    if packet[0] != "_c10d_functional" or len(packet) < 2:
        return None
    kind = packet[1].removesuffix("_out").removesuffix("_coalesced")
    return kind if kind in KINDS else None


def stands_for(node: Json) -> list[str]:
    return [origin["uid"] for origin in node.get("origins", ()) if origin.get("pass") == "bucket"]


# ---- the checker


def tensors_of(value: Json) -> Iterator[tuple[str, int]]:
    """The dtype and number of elements of each tensor."""
    if "tensor" in value:
        elements = 1
        for size in value["tensor"].get("sizes", ()):
            elements *= int(size["value"] if isinstance(size, dict) else size)
        yield value["tensor"]["dtype"].removeprefix("DTYPE_"), elements
    for several in ("tuple", "list"):
        for item in value.get(several, {}).get("items", ()):
            yield from tensors_of(item)


def dtypes_of(node: Json) -> str:
    return ", ".join(sorted({dtype for dtype, _ in tensors_of(node["value"])}))


def bytes_of(node: Json) -> int:
    return sum(ITEM_BYTES[dtype] * elements for dtype, elements in tensors_of(node["value"]))


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
    return [str(arg) for arg in node.get("args", ()) if not list(inputs_of(arg))]


def given_to(node: Json) -> list[str]:
    return list(inputs_of(node["args"][0]))


def broken(before: Json, after: Json, cap_bytes: int) -> list[str]:
    """The errors in the output graph, in words."""
    old = {node["uid"]: node for node in main_nodes(before)}
    old_by_name = {node["name"]: node for node in old.values()}
    nodes = {node["name"]: node for node in main_nodes(after)}
    lines, seen, where = [], set(), {}
    waits = set()
    for node in nodes.values():
        for name in read_of(node):
            if name not in seen:
                lines.append(f"{node['name']} reads {name}, which comes after it")
            is_wait = "wait_tensor" in str(node.get("target"))
            source = nodes.get(name)
            is_part = source is not None and str(source.get("target")) == "operator.getitem" and bool(kind_of(nodes[read_of(source)[0]]))
            if is_part:
                source = nodes[read_of(source or {})[0]]
            takes_part = "coalesced" in str((source or {}).get("target")) and str(node.get("target")) == "operator.getitem"
            if source and kind_of(source) and not is_wait and not takes_part and stands_for(source):
                lines.append(f"{node['name']} reads {name} before a wait")
            if is_wait:
                waits.add(name)
        seen.add(node["name"])
    for node in nodes.values():
        kind, members = kind_of(node), [old[uid] for uid in stands_for(node) if uid in old]
        if kind is None or not members:
            continue
        name = node["name"]
        given = [old_by_name[given_to(member)[0]] for member in members]
        total = sum(max(bytes_of(member), bytes_of(source)) for member, source in zip(members, given, strict=True))
        if total > cap_bytes:
            lines.append(f"{name}: {total} B, and the cap is {cap_bytes} B")
        facts = {(kind_of(member), str(literals_of(member)), dtypes_of(member)) for member in members}
        if facts != {(kind, str(literals_of(node)), dtypes_of(node))}:
            lines.append(f"{name}: members of several kinds: {facts}")
        if bytes_of(node) != sum(map(bytes_of, members)):
            lines.append(f"{name}: its output has other bytes than its members'")
        if sum(bytes_of(nodes[source]) for source in given_to(node)) != sum(map(bytes_of, given)):
            lines.append(f"{name}: its input has other bytes than its members'")
        parts = [part["name"] for part in nodes.values() if str(part.get("target")) == "operator.getitem" and read_of(part)[0] == name]
        if "coalesced" in node["target"] and len(parts) != len(members):
            lines.append(f"{name}: {len(parts)} of {len(members)} results are taken")
        if not waits.issuperset(parts or [name]):
            lines.append(f"{name}: it is never waited for")
        for member in members:
            if member["uid"] in where:
                lines.append(f"{member['name']} is in {where[member['uid']]} and in {name}")
            where[member["uid"]] = name
    kept = {node["uid"] for node in nodes.values()}
    for uid, node in old.items():
        if kind_of(node) and (uid in kept) == (uid in where):
            lines.append(f"{node['name']} is {'lost' if uid not in kept else 'both in a bucket and unbucketed'}")
    return lines


def calls_of(module: Json) -> Counter[str]:
    return counted(str(node["target"]) for node in main_nodes(module) if "target" in node)


def differences(theirs: Counter[str], ours: Counter[str]) -> list[str]:
    return [f"{name} {theirs[name]} and {ours[name]}" for name in sorted(theirs | ours) if theirs[name] != ours[name]]


# ---- the table


def rows(fxopt: Fxopt, name: str, caps: list[float], folder: pathlib.Path) -> Iterator[tuple[str, bool]]:
    module = with_groups(fxopt, name, folder)
    for cap in caps:
        size = f"{int(cap * 1024)}KiB" if cap != int(cap) else f"{int(cap)}MiB"
        told = f"all-gather={size},reduce-scatter={size},all-reduce={size}"
        graph_module = load(copy.deepcopy(module), folder)
        theirs, taken, seconds = by_torch(graph_module, cap)
        twin = by_fxopt(fxopt, name, f"bucket{{{told},compat=torch,form=out}}", module, folder)
        ours = by_fxopt(fxopt, name, f"bucket{{{told},groups=all,max-span=0,max-growth=-1}}", module, folder)
        together = by_fxopt(fxopt, name, f"bucket{{{told},groups=all,max-span=0,max-growth=-1,form=coalesced}}", module, folder)
        forms = differences(calls_of_torch(graph_module), calls_of(twin.module))
        graph_module = load(copy.deepcopy(module), folder)
        by_torch(graph_module, cap, "coalesced")
        steps = f"bucket{{all-gather={size},compat=torch,form=out}},bucket{{all-gather=0,reduce-scatter={size},compat=torch,form=coalesced}}"
        forms += differences(calls_of_torch(graph_module), calls_of(by_fxopt(fxopt, name, steps, module, folder).module))
        cells, is_wrong = [name_of(pathlib.Path(name)), f"{cap:g}"], False
        cells += [f"{len(found)} of {sum(map(len, found))}" for found in (theirs, twin.buckets)]
        is_same = sorted(map(sorted, theirs)) == sorted(map(sorted, twin.buckets))
        if "rank" not in module:
            forms = []  # the place of the rank's shard in a result is not known
        told_forms = "unknown: the file names no rank" if "rank" not in module else "same" if not forms else "; ".join(forms[:3])
        cells += ["same" if is_same else "differ", told_forms]
        alike = [kept for bucket in ours.buckets if (kept := [member for member in bucket if member in taken])]
        cells += [f"{len(buckets)} of {sum(map(len, buckets))}" for buckets in (alike, ours.buckets)]
        found = [line for item in (twin, ours, together) for line in broken(module, item.module, int(cap * (1 << 20)))]
        cells.append("holds" if not found else "; ".join(found[:3]))
        cells += [f"{seconds:.2f}", f"{twin.seconds:.4f}", f"{twin.program_seconds:.3f}"]
        cells += [f"{seconds / twin.seconds:.0f}", f"{seconds / twin.program_seconds:.0f}"]
        saved = [sum(map(len, buckets)) - len(buckets) for buckets in (theirs, alike)]
        is_worse = saved[1] < saved[0]
        cells.append(f"{saved[0]}, {saved[1]}{' WORSE' if is_worse else ''}")
        is_wrong = not is_same or bool(forms) or bool(found) or is_worse
        yield f"| {' | '.join(cells)} |", is_wrong


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--caps", default=",".join(map(str, CAPS)), metavar="MIB,...", help=f"default: {CAPS}")
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    options = parser.parse_args()
    fxopt = Fxopt(options.fxopt)
    print(
        "| graph | MiB | PyTorch: buckets of members | compat=torch | members | forms | ours, within PyTorch's filters | ours | checker"
        " | s, PyTorch | s, the pass | s, fxopt | ratio, pass | ratio | launches saved, PyTorch and ours |"
    )
    print(f"|{'---|' * 15}")
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
