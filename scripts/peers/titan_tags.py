#!/usr/bin/env python3
"""Lists values that torchtitan tags for recompute but keeps, beside an independent count.

    scripts/peers/titan_tags.py [--fxopt PROGRAM] [--keep FOLDER] [--table] [POLICY...]

The training step of torchtitan's debug Llama (titan_debug of make_testdata.py) is tagged by
torchtitan's own policies and put through its own recomputation pass. `fxopt tags` then lists every
tagged value that backward still reads. The same tagged graph goes through remat,dce of fxopt.
Values that remat refuses to repeat are tagged MUST_SAVE first, as the error advises.

The independent count uses the torch.fx graph alone: values of forward that are tagged for recompute
and that a backward node reads, directly or through views, by the storages that the tracer recorded.
Exits with 1 if fxopt lists other values, or if a tag that remat left was decided only by its own
rule.
"""

from __future__ import annotations

import argparse
import logging
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from command import command_line
import make_testdata
import torch
import torch._functorch._activation_offloading.offload_ops  # noqa: F401  registers the ops of ao
from fxopt import bridge
from fxopt.form import Json
from fxopt_program import Fxopt
from remat_sides import copy_of
from torch.fx import GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy
from torchtitan.experiments.graph_trainer import memory_policy
from torchtitan.experiments.graph_trainer.selective_activation_remat import selective_activation_remat_pass

POLICIES = ("full", "default", "eager")
RECOMPUTE = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)
PASSES = "remat,dce"
KEPT_ANYWAY = "kept_anyway"  # the rule about views of inputs and of saved values
OF_TAGS = ("", "must_recompute", "preference")  # rules that carry out a recompute tag
UNDECIDED = ("ignored", "not judged", "dropped", "conflicting")


# ---- the independent count


def storages(node: Node) -> set[int]:
    leaves = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    return {leaf.untyped_storage()._cdata for leaf in leaves if isinstance(leaf, torch.Tensor)}


def bases(node: Node) -> list[Node]:
    """The bases of a view; empty for other nodes."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is not None and schema.is_mutable:
        return []
    return [source for source in node.all_input_nodes if storages(source) & storages(node)]


def is_backward(node: Node) -> bool:
    return bool(node.meta.get("autograd_backward"))


def is_to_recompute(node: Node) -> bool:
    return node.meta.get("recompute") in RECOMPUTE and not is_backward(node)


@dataclass
class Kept:
    """Names of values tagged for recompute whose originals backward reads: directly; and in any
    way, including through views."""

    directly: set[str]
    at_all: set[str]


def kept(graph_module: GraphModule) -> Kept:
    nodes = graph_module.graph.nodes
    read = [node for node in nodes if not is_backward(node) and any(map(is_backward, node.users))]
    seen: set[Node] = set()
    left = list(read)
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            left += bases(node)
    return Kept({node.name for node in read if is_to_recompute(node)}, {node.name for node in seen if is_to_recompute(node)})


# ---- one policy


def tagged(graph_module: GraphModule, policy: str) -> GraphModule:
    """A copy, tagged by one of torchtitan's policies and put through its own pass."""
    result = copy_of(graph_module)
    memory_policy.tag_sac_policy(result, policy_fn=getattr(memory_policy, f"_make_{policy}_memory_policy")())
    selective_activation_remat_pass(result)
    result.recompile()
    return result


def copies(graph_module: GraphModule) -> int:
    return sum("_recomputed" in node.name for node in graph_module.graph.nodes)


def save_refused(graph_module: GraphModule, tags: list[Json]) -> int:
    """Tags values that remat refuses to repeat as saved; returns their number."""
    refused = {row["node"] for row in tags if row["outcome"] == "conflicting"}
    for node in graph_module.graph.nodes:
        if node.name in refused:
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return len(refused)


@dataclass
class Row:
    """The figures of one policy."""

    policy: str
    copies: int  # by torchtitan
    directly: int
    counted: int
    listed: int
    lines: int  # number of lines of fxopt's table
    refused: int
    wrong: list[str]
    copies_after: int = 0  # by fxopt
    left: int = 0  # still read by backward


class Audit:
    def __init__(self, fxopt: Fxopt, folder: pathlib.Path) -> None:
        self.fxopt = fxopt
        self.folder = folder

    def tags(self, path: pathlib.Path) -> list[Json]:
        return self.fxopt.run("tags", str(path))["files"][0]["tags"]

    def table(self, path: pathlib.Path) -> str:
        return subprocess.run([self.fxopt.program, "tags", str(path)], capture_output=True, text=True, check=True).stdout

    def judge(self, graph_module: GraphModule, told: Json, policy: str, *, prints_table: bool) -> Row:
        result = tagged(graph_module, policy)
        path, after = (self.folder / f"titan_debug_{policy}{end}.pb" for end in ("", "_after"))
        bridge.save(result, path, fxopt=self.fxopt.program, **told)
        tags, expected, table = self.tags(path), kept(result), self.table(path)
        if prints_table:
            print(table)
        listed = {row["node"] for row in tags if row["outcome"] == "ignored"}
        wrong = [f"not listed: %{name}" for name in sorted(expected.at_all - listed)]
        wrong += [f"listed, though backward does not read it: %{name}" for name in sorted(listed - expected.at_all)]
        counts = (len(expected.directly), len(expected.at_all), len(listed), table.count("\n"))
        row = Row(policy, copies(result), *counts, save_refused(result, tags), wrong)
        bridge.save(result, path, fxopt=self.fxopt.program, **told)
        self.fxopt.opt(path, after, PASSES)
        self.judge_after(after, row)
        return row

    def judge_after(self, path: pathlib.Path, row: Row) -> None:
        """Checks that every value left by remat has a rule, or is a view of memory that is kept
        anyway."""
        loaded = bridge.load(path, fxopt=self.fxopt.program)
        outcomes = {tag["node"]: tag for tag in self.tags(path)}
        left = kept(loaded).at_all
        row.copies_after, row.left = copies(loaded), len(left)
        undecided = {name: tag["outcome"] for name, tag in outcomes.items() if tag["outcome"] in UNDECIDED}
        row.wrong += [f"{outcome} after {PASSES}: %{name}" for name, outcome in undecided.items()]
        against = {name for name, tag in outcomes.items() if tag["outcome"] == "overridden" and tag["rule"] in OF_TAGS}
        row.wrong += [f"overridden after {PASSES} by the rule of its own tag: %{name}" for name in sorted(against)]
        said = {name for name, tag in outcomes.items() if tag["outcome"] == "overridden" or tag["rule"] == KEPT_ANYWAY}
        row.wrong += [f"backward reads it after {PASSES}, and no tag shows it: %{name}" for name in sorted(left - said)]


COLUMNS = {
    "policy": "policy",
    "copies": "copies by torchtitan",
    "directly": "kept, read by backward",
    "counted": "or through views",
    "listed": "`fxopt tags` lists",
    "lines": "lines",
    "refused": "refused",
    "copies_after": "copies by fxopt",
    "left": "kept by a rule",
}


def print_rows(rows: list[Row]) -> None:
    print(f"| {' | '.join([*COLUMNS.values(), 'wrong'])} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for row in rows:
        print(f"| {' | '.join(str(getattr(row, name)) for name in COLUMNS)} | {len(row.wrong)} |")
    for row in rows:
        for line in row.wrong:
            print(f"{row.policy}: {line}")


def run(options: argparse.Namespace) -> int:
    logging.disable(logging.INFO)  # the passes of torchtitan log their work
    graph_module, told = make_testdata.trace("titan_debug")
    with tempfile.TemporaryDirectory() as folder:
        audit = Audit(Fxopt(options.fxopt), options.keep or pathlib.Path(folder))
        policies = options.policies or POLICIES
        rows = [audit.judge(graph_module, told, policy, prints_table=options.table) for policy in policies]
    print_rows(rows)
    return 1 if any(row.wrong for row in rows) else 0


def main(arguments: list[str] | None = None) -> int:
    parser = command_line(__doc__)
    parser.add_argument("policies", nargs="*", choices=[[], *POLICIES], metavar="POLICY", help=f"default: {', '.join(POLICIES)}")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="write the graphs there")
    parser.add_argument("--table", action="store_true", help="also print the table of `fxopt tags`")
    options = parser.parse_args(arguments)
    try:
        return run(options)
    except (KeyError, OSError, RuntimeError) as error:
        print(f"titan_tags: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
