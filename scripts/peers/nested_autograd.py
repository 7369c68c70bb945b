#!/usr/bin/env python3
"""Checks training steps with autograd inside forward: phases, recomputed copies, values and peaks.

    scripts/peers/nested_autograd.py [--fxopt PROGRAM] [--keep FOLDER] models [NAME...]
    scripts/peers/nested_autograd.py [--fxopt PROGRAM] files FILE...
    scripts/peers/nested_autograd.py [--fxopt PROGRAM] compile [NAME...]

models: each model of nested_models.py is traced whole by make_fx, with the backward marks of
PyTorch ("marked"), which nested autograd calls also write in forward, and without them ("bare");
some also as AOTAutograd's joint graph. files: graphs with roles of outputs, such as those that
--keep wrote. Each is checked so:

  phases   A node that the loss or another output of forward needs is forward, whatever its mark.
           Any other node that needs the gradient of a loss is backward. Any other node that is
           marked backward stays so; the rest may be either. Compared with the phases that
           `infer-phase` writes.
  copies   After `sac{policy=full}` and `policy=per-op` with `remat,dce`, with and without
           `canonicalize,cse` in front: no output of forward needs a recomputed copy; a copy comes
           after the loss (the first of several) in whose backward it is read.
  values   PyTorch executes both graphs: outputs are equal to the bit, and each is finite and not
           zero throughout.
  peaks    Compared with the same pipeline without sac and remat: full lowers the ideal peak if the
           peak is in backward and at least a tenth of it was made by forward. Otherwise a line
           reports where the peak is and fxopt's remarks, also if per-op raises it. Each ideal peak
           equals the bytes of live storages while PyTorch runs the graph.

compile: torch.compile(model, backend="fxopt", options={"passes": "sac{policy=full}"}) on models of
transformers, timm and torchvision. The ideal peak of the step, forward and backward graph, must be
lower than without passes; loss and gradients must equal those of "aot_eager" to the bit.

Needs are found here by walking edges; the start of each loss's backward is recorded while tracing.
Prints one line for each error, then a table. Exits with 1 if anything is wrong. Needs torch 2.15,
transformers, timm, torchvision; no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from command import command_line
import torch
from bound_values import BoundGraph
from device_inputs import is_telling, make_inputs
from differential_parts import observe
from fxopt import bridge, origins, tool
from fxopt.form import Json
from fxopt_program import Fxopt, recompute_origin
from live_bytes import Counted
from nested_compiled import COMPILED, run_compiled
from nested_models import CASES
from nested_traces import files_of
from remat_sides import read_result
from step_memory import measured
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

QUIET = "--no-reproducer"
POLICIES = ("full", "per-op")
# The passes before sac, and the pipeline without sac and remat.
CLEAN = {"": "dce", "canonicalize,cse,": "canonicalize,cse,dce"}
# least share of a backward peak made by forward for which recomputation must lower the peak
SHARE = 0.1
MUTE = 0.2  # share of outputs that may be zero: gradients of biases that a derivative does not see
LOUD = 25.0  # inputs are made small; these steps need numbers near 0.5, which use more bits


# ---- dependencies


def reached(start: Iterable[Node], step: Callable[[Node], Iterable[Node]], without: set[Node] = frozenset()) -> set[Node]:
    """The start nodes and all nodes reached from them, without crossing nodes of `without`."""
    pending, seen = [node for node in start if node not in without], set()
    while pending:
        if (node := pending.pop()) not in seen:
            seen.add(node)
            pending += [other for other in step(node) if other not in without]
    return seen


class Needs:
    """A graph, and its forward and backward nodes as found from its dependencies."""

    def __init__(self, graph_module: GraphModule, main: Json, seeds: list[str]) -> None:
        """seeds: for each loss, the node where its backward starts; empty if it no longer
        exists."""
        self.graph_module, self.main = graph_module, main
        self.nodes = {node.name: node for node in graph_module.graph.nodes}
        self.seeds = [self.nodes.get(seed) for seed in seeds]
        self.place = {node: i for i, node in enumerate(self.nodes.values())}
        self.records = {record["name"]: record for record in self.main["nodes"]}
        # If a joint graph has no gradient for an input, its output has no role.
        kinds = [spec.get("role", "OUTPUT_ROLE_GRADIENT").removeprefix("OUTPUT_ROLE_") for spec in main["outputs"]]
        leaves = list(zip(origins.output_leaves(self.graph_module), kinds, strict=True))
        self.losses = [leaf for leaf, kind in leaves if kind == "LOSS"]
        self.outputs = [leaf for leaf, kind in leaves if kind != "GRADIENT" and isinstance(leaf, Node)]
        self.forward = reached(self.outputs, lambda node: node.all_input_nodes)
        output = {self.graph_module.graph.output_node()}
        begins = [[seed] if seed is not None else [] for seed in self.seeds]
        self.of_seed = [reached(begin, lambda node: node.users, self.forward | output) for begin in begins]
        self.backward = set().union(*self.of_seed).difference(self.seeds)

    def calls(self) -> Iterator[Node]:
        return (node for node in self.nodes.values() if node.op == "call_function")

    def is_behind(self, node: Node) -> bool:
        """Whether it is in backward of some loss."""
        return (
            node in self.backward or node not in self.forward and self.place[node] > min(self.place[loss] for loss in self.losses)
        )


def seeds_of_file(graph_module: GraphModule, main: Json) -> list[str]:
    """Tangents, or else calls that take the shape of a loss and are no output of forward."""
    records = zip(origins.placeholders(graph_module), main["nodes"])
    if tangents := [node.name for node, record in records if record.get("input", {}).get("role") == "INPUT_ROLE_TANGENT"]:
        return tangents
    needs = Needs(graph_module, main, [])
    likes = (torch.ops.aten.ones_like.default, torch.ops.aten.full_like.default)
    return [user.name for loss in needs.losses for user in loss.users if user.target in likes and user not in needs.forward]


def followed(before: Needs, main: Json) -> list[str]:
    """The nodes that the seeds became: nodes of the same uid, nodes merged from them, or copies in
    their place."""
    wanted = [int(before.records[seed.name].get("uid", 0)) for seed in before.seeds if seed is not None]
    now = {int(record.get("uid", 0)): record["name"] for record in main["nodes"]}
    for kind in ("ORIGIN_MERGED", "ORIGIN_RECOMPUTED"):
        for record in main["nodes"]:
            for origin in record.get("origins", ()):
                if origin["kind"] == kind:
                    now.setdefault(int(origin.get("uid", 0)), record["name"])
    return [now.get(uid, "") for uid in wanted]


def written_phase(needs: Needs, node: Node) -> str:
    """The phase in the file; a getitem without one has the phase of its operand."""
    record = needs.records[node.name]
    if "phase" not in record and record["target"] == "operator.getitem" and node.args[0].op == "call_function":
        return written_phase(needs, node.args[0])
    return record.get("phase", "PHASE_FORWARD").removeprefix("PHASE_").lower()


# ---- judging one graph


@dataclass
class Row:
    name: str
    nodes: int = 0
    marks: int = 0  # wrong ones
    phases: int = 0  # different ones
    peaks: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = "ok" if not self.wrong else f"WRONG ({len(self.wrong)})"
        return f"| {self.name} | {self.nodes} | {self.marks} | {self.phases} | {' | '.join(self.peaks.values())} | {verdict} |"


def said(report: Json) -> str:
    """The remarks of the passes."""
    found = [f"{step['pass']}: {kind} ({n})" for step in report["passes"] for kind, n in step["remarks"].items()]
    found += [f"{step['pass']}: {step['notes']}" for step in report["passes"] if step["pass"] == "remat"]
    return ", ".join(found) or "nothing"


def listed(nodes: list[Node]) -> str:
    return ", ".join(f"%{node.name}" for node in nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")


def check_phases(row: Row, fxopt: Fxopt, before: Needs, path: pathlib.Path, folder: pathlib.Path) -> None:
    marks = {node for node in before.calls() if before.records[node.name].get("phase") == "PHASE_BACKWARD"}
    told = {node for node in before.calls() if "phase" in before.records[node.name]}
    unmarked = before.backward - marks if marks else before.backward & told
    false = [node for node in before.calls() if node in marks & before.forward or node in unmarked]
    row.marks = len(false)
    report = fxopt.opt(path, folder / "phases.pb", "infer-phase", QUIET)
    after = read(fxopt, folder / "phases.pb", before)
    phases = {before.nodes[node.name]: written_phase(after, node) for node in after.calls()}
    in_forward = [node for node, phase in phases.items() if node in before.forward and phase == "backward"]
    in_backward = [node for node, phase in phases.items() if node in before.backward and phase != "backward"]
    undone = [n for n, phase in phases.items() if n in marks - before.forward - before.backward and phase != "backward"]
    row.phases = len(in_forward) + len(in_backward) + len(undone)
    for nodes, words in (
        (in_forward, "backward, but outputs of forward need them"), (in_backward, "forward, but need the gradient of a loss"),
        (undone, "forward, but are marked backward and no output of forward needs them"),
    ):  # fmt: skip
        if nodes:
            row.wrong.append(f"{len(nodes)} phases: {listed(nodes)} {words}")
    if false:
        row.notes.append(f"{len(false)} marks are wrong ({listed(false)}); infer-phase reports {said(report)}")


def read(fxopt: Fxopt, path: pathlib.Path, before: Needs) -> Needs:
    """The output graph of a pass."""
    result = read_result(fxopt, path)
    return Needs(result.graph_module, result.main, followed(before, result.main))


def check_copies(row: Row, how: str, before: Needs, after: Needs) -> None:
    copies = [node for node in after.calls() if recompute_origin(after.records[node.name]) is not None]
    if in_forward := [node for node in copies if node in after.forward]:
        row.wrong.append(f"{how}: outputs of forward need {len(in_forward)} of {len(copies)} copies: {listed(in_forward)}")
    early, unread = [], []
    all_of_seeds = set().union(*after.of_seed)
    for copy in set(copies).difference(in_forward):
        # Follow the copy to nodes that need a gradient; there it is read.
        way = reached([copy], lambda node: () if node in all_of_seeds else node.users)
        losses = [loss for loss, of_seed in zip(after.losses, after.of_seed) if way & of_seed]
        if not losses:
            unread.append(copy)
        elif after.place[copy] < min(after.place[loss] for loss in losses):
            early.append(copy)
    for nodes, words in ((early, "before the loss that they serve"), (unread, "in no backward")):
        if nodes:
            row.wrong.append(f"{how}: {len(nodes)} copies are {words}: {listed(sorted(nodes, key=after.place.get))}")


def saved(counted: Counted, needs: Needs) -> int:
    """Bytes at the peak that forward made and that are not its outputs."""
    return sum(
        counted.held[key]
        for key, nodes in counted.holders.items()
        if nodes[0].op == "call_function" and not needs.is_behind(nodes[0]) and not set(nodes) & set(needs.outputs)
    )


def execute(graph_module: GraphModule, inputs: list[object]) -> tuple[observe.Seen, Counted]:
    """The results that a caller sees, and the live bytes."""
    own, counted = [value.clone() if isinstance(value, Tensor) else value for value in inputs], Counted(graph_module)
    return observe.execute(counted, own, observe.attributes_of(graph_module)), counted


def check_peak(row: Row, fxopt: Fxopt, path: pathlib.Path, needs: Needs, counted: Counted) -> tuple[int, Node]:
    """The ideal peak and its node."""
    graph = fxopt.run("mem", str(path))["files"][0]["graphs"][0]
    device = next(device for device in graph["devices"] if device["device"] == "cpu")
    if graph["unknown_storages"]:
        row.notes.append(f"{path.stem}: unknown sizes of {graph['unknown_nodes'][:3]}")
    if counted.peak != device["peak_bytes"]:
        row.wrong.append(f"{path.stem}: peak {device['peak_bytes']} at %{device['node']}, counted {counted.peak}")
    return device["peak_bytes"], needs.nodes[device["node"]]


def check(name: str, path: pathlib.Path, seeds: list[str] | None, fxopt: Fxopt, folder: pathlib.Path) -> Row:
    row = Row(name)
    attempt(row, "it", lambda: judge(row, path, seeds, fxopt, folder))
    return row


def judge(row: Row, path: pathlib.Path, seeds: list[str] | None, fxopt: Fxopt, folder: pathlib.Path) -> None:
    given = read_result(fxopt, path)
    graph_module = given.graph_module
    before = Needs(graph_module, given.main, seeds or seeds_of_file(graph_module, given.main))
    row.nodes = len(before.nodes)
    attempt(row, "infer-phase", lambda: check_phases(row, fxopt, before, path, folder))
    inputs = [
        v.mul_(LOUD) if isinstance(v, Tensor) and v.is_floating_point() else v for v in make_inputs(BoundGraph(graph_module))
    ]
    expected, counted = execute(graph_module, inputs)
    results = [leaf for leaf in tree_leaves(bridge.run(graph_module, inputs)) if isinstance(leaf, Tensor)]
    if (mute := sum(not is_telling(value) for value in results)) > MUTE * len(results):
        row.wrong.append(f"{mute} of {len(results)} outputs are zero or not finite, and show nothing")
    size, at = check_peak(row, fxopt, path, before, counted)
    row.peaks["before"] = f"{size} at %{at.name}"
    for front, plain in CLEAN.items():
        base = folder / "base.pb"
        fxopt.opt(path, base, plain, QUIET)
        cleaned = read(fxopt, base, before)
        counted = execute(cleaned.graph_module, inputs)[1]
        size, at = check_peak(row, fxopt, base, cleaned, counted)
        where, share = "backward" if cleaned.is_behind(at) else "forward", saved(counted, cleaned) / size
        row.peaks[f"{front}base"] = f"{size} in {where}, {100 * share:.0f} % of forward"
        for policy in POLICIES:
            how = f"{front}sac{{policy={policy}}},remat,dce"
            row.peaks[how] = "refused"

            def one(how: str = how, policy: str = policy) -> None:
                target = folder / "after.pb"
                report = fxopt.opt(path, target, how, QUIET)
                after = read(fxopt, target, before)
                if None in after.seeds:
                    row.notes.append(f"{how}: the start of backward is lost")
                check_copies(row, how, before, after)
                found, seen = execute(after.graph_module, inputs)
                row.wrong.extend(f"{how}: {line}" for line in observe.differences(expected, found))
                now, then = check_peak(row, fxopt, target, after, seen)
                row.peaks[how] = f"{now} ({100 * (now / size - 1):+.0f} %)"
                if now > size or policy == "full" and now == size:
                    words = f"{how}: the peak {size} at %{at.name} in {where} is {now} at %{then.name}; fxopt: {said(report)}"
                    is_wrong = policy == "full" and where == "backward" and share >= SHARE
                    (row.wrong if is_wrong else row.notes).append(words)

            attempt(row, how, one)


def attempt(row: Row, how: str, work: Callable[[], None]) -> None:
    try:
        work()
    except (RuntimeError, KeyError, bridge.LoadError, tool.FxoptError) as error:
        row.wrong.append(f"{how}: {type(error).__name__} {str(error).partition('exited with ')[2][:300] or error}")


# ---- torch.compile


def check_compiled(name: str, fxopt: Fxopt, folder: pathlib.Path) -> Row:
    row = Row(name)
    make, size = COMPILED[name]
    expected, _ = run_compiled(make, size, "aot_eager", None)
    peaks = []
    for passes in ("", *(f"sac{{policy={policy}}}" for policy in POLICIES)):
        found, pairs = run_compiled(make, size, "fxopt", {"passes": passes} if passes else {})
        wrong = [i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if not torch.equal(a, b)]
        if wrong:
            row.wrong.append(f"{passes or 'no passes'}: {wrong[:5]} differ, of loss and {len(expected) - 1} gradients")
        if len(pairs) != 1:
            row.wrong.append(f"{passes or 'no passes'}: {len(pairs)} pairs of graphs")
            return row
        paths = [folder / f"{name}_{kind}.pb" for kind in ("forward", "backward")]
        for half, path in zip(pairs[0], paths):
            with contextlib.redirect_stderr(None):
                bridge.save(GraphModule(half, half.graph), path, kind=path.stem.rpartition("_")[2], fxopt=fxopt.program)
        row.nodes = row.nodes or sum(len(half.graph.nodes) for half in pairs[0])
        peaks.append(measured(fxopt, paths)["cpu"])
        row.peaks[passes] = str(peaks[-1]) if not passes else f"{peaks[-1]} ({100 * (peaks[-1] / peaks[0] - 1):+.0f} %)"
        if "full" in passes and peaks[-1] >= peaks[0]:
            row.wrong.append(f"{passes}: the peak of the step {peaks[0]} is {peaks[-1]}")
    return row


# ---- command

HEADS = {
    "models": ["before", *(f"{front}{what}" for front in CLEAN for what in ("base", *POLICIES))],
    "compile": ["no passes", *POLICIES],
}
HEADS["files"] = HEADS["models"]


def rows(options: argparse.Namespace, fxopt: Fxopt, folder: pathlib.Path) -> Iterator[Row]:
    if options.what == "files":
        yield from (check(path, pathlib.Path(path), None, fxopt, folder) for path in options.names)
    for name in options.names or (CASES if options.what == "models" else COMPILED):
        if options.what == "compile":
            yield check_compiled(name, fxopt, folder)
        if options.what == "models":
            for what, path, seeds in files_of(name, options.keep or folder, fxopt.program):
                yield check(what, path, seeds, fxopt, folder)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--keep", metavar="FOLDER", type=pathlib.Path, help="write the graphs of models there")
    parser.add_argument("what", choices=tuple(HEADS))
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    known = {"models": CASES, "compile": COMPILED}.get(options.what, options.names)
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown names: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    torch.set_num_threads(1)
    fxopt, table = Fxopt(options.fxopt), []
    with tempfile.TemporaryDirectory() as name:
        for row in rows(options, fxopt, pathlib.Path(name)):
            for line in row.wrong:
                print(f"{row.name}: WRONG: {line}", flush=True)
            for line in row.notes:
                print(f"{row.name}: {line}", flush=True)
            table.append(row)
    heads = ["model", "nodes", "marks wrong", "phases differing", *(f"peak {head}" for head in HEADS[options.what]), "verdict"]
    print("", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *table, sep="\n")
    return min(1, sum(bool(row.wrong) for row in table))


if __name__ == "__main__":
    sys.exit(main())
