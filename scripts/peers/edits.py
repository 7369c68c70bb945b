#!/usr/bin/env python3
"""Makes wrong edits of training graphs, which `fxopt verify --against` must not prove.

    scripts/peers/edits.py [--fxopt PROGRAM] [--edits N] [--seeds A:B] [--each N] [--only CLASS]...
                           [--pairs] [GRAPH...]

Edits of about thirty classes (edit_parts/classes.py) change random programs (those of
differential.py, a seed each) or graph files, one place at a time. Each edited graph is written with
the metadata of the original, compared by the prover, and executed on the CPU as differential.py
does. The table counts by class: the edits; how many of those that change a result were not proved;
how many of those that change nothing were proved; and the undecided ones. MISSED: proved, but
differs when executed (an exception of an unused call does not count). This is a wrong proof, and
--keep FOLDER keeps it as before.json and after.json. Exits with 1 if there is one. Needs torch; no
GPU.

With --pairs the programs are joint graphs (other files are skipped), each cut in a random mode.
The edits are those of edit_parts/pairs.py: each changes one place of the forward and the backward
graph, which are compared with the joint graph and executed one after the other. The unedited pair
must be proved.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from command import command_line, seed_range
import torch
from torch.fx import Node
from torch.utils import _pytree as pytree
from differential_parts import campaign, families, files, observe, optimize, pipelines
from differential_parts.programs import (
    FAILING, METADATA_CHANGES, Dice, Program, Unusable, is_random, op_name, schema_of, writes,
)  # fmt: skip
from edit_parts.classes import EDITS
from edit_parts.pairs import PAIR_EDITS, UNCHANGED, Pair
from fxopt import form, tool
from fxopt.form import FormError
from fxopt.reader import LoadError
from fxopt.writer import ExportError
from fxopt_program import Fxopt

CUTS = (*pipelines.CUTS, *pipelines.MARKING, f"fsdp-gathers,{pipelines.CUTS[0]}", *(f"{pipelines.MARKING[0]},join,{again}" for again in pipelines.AGAIN))
EXECUTION_LIMIT = 4  # runs of the original before a result counts as different


class _Surviving(torch.fx.Interpreter):
    """Executes a graph past calls that raise: skips them and all that depends on their results or
    writes. Raises at the end if the caller can see any of that."""

    def __init__(self, graph_module: torch.fx.GraphModule) -> None:
        super().__init__(graph_module, garbage_collect_values=False)
        self.lost: dict[Node, Exception] = {}
        self.reach: dict[Node, set[object]] = {}  # the storages that a lost value may alias
        self.spoiled: dict[object, Exception] = {}  # by storage: the error of the lost write
        self.pending: set[object] = set()  # the storages that a collective may still fill

    def run_node(self, node: Node) -> object:
        if node.op in ("placeholder", "get_attr"):
            return super().run_node(node)
        error = next((found for source in node.all_input_nodes if (found := self._error(source)) is not None), None)
        if node.op == "output":
            held = [source for source in self.env if source.op in ("placeholder", "get_attr")]
            error = error or next((found for source in held if (found := self._error(source)) is not None), None)
            if error is not None:
                raise error
            return super().run_node(node)
        is_wait = "_c10d_functional.wait_tensor" in str(node.target)
        is_collective = "_c10d_functional." in str(node.target) and not is_wait
        if error is None:
            try:
                result = super().run_node(node)
            except observe.ERRORS as raised:
                error = raised
            else:
                if is_collective:
                    self.pending |= self._on(result)
                elif is_wait:
                    self.pending -= self._on(result)
                return result
        waits_in_vain = is_wait and not any(self._storages(source) & self.pending for source in node.all_input_nodes)
        if is_random(node) or FAILING in str(error) or is_collective or (is_wait and not waits_in_vain):
            raise error
        self.lost[node] = error
        schema = schema_of(node)
        is_new = not is_wait and schema is not None and all(item.alias_info is None for item in schema.returns)
        self.reach[node] = set() if is_new else {item for source in node.all_input_nodes for item in self._storages(source)}
        if writes(node):
            for source in self._written(node):
                # A lost source has no value of its own; it may alias its inputs, which only a write
                # of bytes can spoil.
                if source not in self.lost or op_name(node) not in METADATA_CHANGES:
                    self.spoiled |= dict.fromkeys(self._storages(source), error)
        return None

    def _error(self, node: Node) -> Exception | None:
        if node in self.lost:
            return self.lost[node]
        return next((self.spoiled[item] for item in self._storages(node) if item in self.spoiled), None)

    def _storages(self, node: Node) -> set[object]:
        if node in self.lost:
            return self.reach[node]
        return self._on(self.env[node])

    @staticmethod
    def _on(value: object) -> set[object]:
        return {observe.storage_key(leaf) for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)}

    @staticmethod
    def _written(node: Node) -> list[Node]:
        schema = schema_of(node)
        if schema is None:
            return node.all_input_nodes
        given = [*zip(schema.arguments, node.args), *((item, node.kwargs.get(item.name)) for item in schema.arguments)]
        written = [arg for item, arg in given if item.alias_info is not None and item.alias_info.is_write]
        return [leaf for leaf in pytree.tree_leaves(written) if isinstance(leaf, Node)]


class Subject:
    """A graph to be edited, with its file and its results."""

    flags: tuple[str, ...] = ()  # flags of verify

    def __init__(self, name: str, program: Program, fxopt: str, folder: pathlib.Path) -> None:
        self.name, self.program, self.fxopt, self.folder = name, program, fxopt, folder
        self.seen = campaign.steady_run(program)
        self.source = optimize.Optimizer.of(program, fxopt, folder).source

    def is_unsteady(self) -> bool:
        return bool(observe.differences(self.seen, campaign.run_graph(self.program, self.program.graph_module)))

    def judge(self, name: str, dice: Dice) -> tuple[str, list[str]] | None:
        """The prover's verdict on one edit, and the differences that PyTorch finds; None if the
        graph has no place for the edit."""
        edited = optimize.copy_of(self.program.graph_module)
        if not EDITS[name](edited, dice):
            return None
        try:
            edited.graph.lint()
            edited.recompile()
            after = self._write(edited)
        except (ExportError, FormError, RuntimeError):
            return None
        return self._judged(after, edited)

    def _judged(self, after: pathlib.Path, edited: torch.fx.GraphModule) -> tuple[str, list[str]] | None:
        verdict = self._verdict(after)
        differences = observe.differences(self.seen, campaign.run_graph(self.program, edited))
        # perhaps in an unused call, which is outside the proof
        if differences and differences[0].startswith("raises"):
            differences = observe.differences(self.seen, campaign.run_graph(self.program, edited, _Surviving(edited).run))
        if differences and any(self.is_unsteady() for _ in range(EXECUTION_LIMIT)):
            return None
        return verdict, differences

    def _write(self, edited: torch.fx.GraphModule) -> pathlib.Path:
        folder = self.folder / "after"
        folder.mkdir(exist_ok=True)
        program = Program(edited, self.program.inputs, told=self.program.told)
        return optimize.Optimizer.of(program, self.fxopt, folder).source.rename(self.folder / "after.json")

    def _verdict(self, after: pathlib.Path) -> str:
        try:
            command = ["verify", str(after), "--against", str(self.source), *self.flags]
            told = tool.run_fxopt(self.fxopt, command, self.folder)
        except tool.FxoptError as error:
            return "differs" if error.code == campaign.NOT_EQUIVALENT else f"refused {error.code}"
        return str((told["step"] if self.flags else told["files"][0])["proof"])


class PairSubject(Subject):
    """A joint graph that is cut, and the pair to be edited."""

    flags = ("--step",)

    def __init__(self, name: str, program: Program, fxopt: str, folder: pathlib.Path) -> None:
        super().__init__(name, program, fxopt, folder)
        self.passes = Dice(name).choice(CUTS)
        self.name += f", {self.passes}"
        target = folder / "pair.json"
        try:
            tool.run_fxopt(fxopt, ["opt", str(self.source), "-o", str(target), "--passes", self.passes, optimize.NO_REPRODUCER], folder)
        except tool.FxoptError as error:
            raise Unusable(f"not cut: {error.code}") from error
        self.module = json.loads(target.read_text(encoding="utf-8"))["module"]

    def judge(self, name: str, dice: Dice) -> tuple[str, list[str]] | None:
        pair = Pair(self.module)
        if not PAIR_EDITS[name](pair, dice):
            return None
        after = self.folder / "after.json"
        form.write_json(pair.module, after)
        try:
            edited = optimize.runnable(pair.module, after)
        except (LoadError, FormError, RuntimeError):
            return None
        return self._judged(after, edited)


def subjects(options: argparse.Namespace, folder: pathlib.Path) -> Iterator[Subject | str]:
    """Yields the reason as text for a subject that cannot be used."""
    make = PairSubject if options.pairs else Subject
    for path in options.graphs:
        with _no_crash() as reason:
            _, program = files.runnable(path, folder / "source.json", options.fxopt)
            yield make(path.name, program, options.fxopt, folder)
        if reason:
            yield f"{path.name}: {reason[0]}"
    for seed in range(*options.seeds) if not options.graphs else ():
        with _no_crash() as reason:
            program, _ = families.make(seed, "joint" if options.pairs else None)
            yield make(f"seed {seed}", program, options.fxopt, folder)
        if reason:
            yield reason[0]


@contextlib.contextmanager
def _no_crash() -> Iterator[list[str]]:
    reason: list[str] = []
    try:
        yield reason
    except (Unusable, ExportError, FormError, NotImplementedError) as error:
        reason.append(str(error)[:80])


class Table:
    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = classes
        self.width = 70 if UNCHANGED in classes else 42
        self.rows: dict[str, Counter[str]] = defaultdict(Counter)
        self.missed: list[str] = []

    def add(self, subject: Subject | PairSubject, name: str, verdict: str, differences: list[str]) -> bool:
        """True for a wrong proof, or if the unedited pair is not proved."""
        if name == UNCHANGED:
            self.rows[f"  {re.sub('partition|mode=', '', subject.passes) or 'default'}"][f"{'other' if differences else 'equal'} {verdict.split()[0]}"] += 1
        how = "other" if differences else "equal"
        self.rows[name][f"{how} {verdict.split()[0]}"] += 1
        if name == UNCHANGED and (differences or verdict != "proved"):
            self.missed.append(f"MISSED {subject.name}: {name}: {verdict}; {'; '.join(differences[:2])}")
        elif how == "other" and verdict == "proved":
            self.missed.append(f"MISSED {subject.name}: {name}: {'; '.join(differences[:2])}")
        else:
            return False
        return True

    def text(self) -> str:
        columns = ("other differs", "other undecided", "other refused", "other proved", "equal proved", "equal differs",
                   "equal undecided", "equal refused")  # fmt: skip
        lines = [f"{'edit':{self.width}}{'edits':>7}" + "".join(f"{column.replace(' ', chr(10)).splitlines()[0]:>11}" for column in columns),
                 " " * (self.width + 7) + "".join(f"{column.split()[1]:>11}" for column in columns)]  # fmt: skip
        total: Counter[str] = Counter()
        for name in self.classes:
            total.update(self.rows[name])
            lines.append(self._line(name, self.rows[name], columns))
            if name == UNCHANGED:
                lines += [self._line(cut, self.rows[cut], columns) for cut in sorted(self.rows) if cut.startswith("  ")]
        return "\n".join([*lines, self._line("all", total, columns)])

    def _line(self, name: str, row: Counter[str], columns: tuple[str, ...]) -> str:
        return f"{name:{self.width}}{row.total():7}" + "".join(f"{row[column]:11}" for column in columns)


def run(options: argparse.Namespace) -> int:
    classes = PAIR_EDITS if options.pairs else EDITS
    table, started, made, skipped = Table(list(classes)), time.monotonic(), 0, 0
    dice = Dice(1)
    with tempfile.TemporaryDirectory() as name:
        for subject in subjects(options, pathlib.Path(name)):
            if isinstance(subject, str):
                skipped += 1
                if options.graphs:
                    print(f"skipped {subject}", flush=True)
                continue
            rare = sorted(options.only or classes, key=lambda each: (each != UNCHANGED, table.rows[each].total(), dice.random()))
            done = 0
            for each in rare:  # the unedited pair, then the classes made least often so far
                judged = subject.judge(each, dice)
                if judged is None:
                    continue
                if table.add(subject, each, *judged):
                    print(table.missed[-1], flush=True)
                    keep(subject, options.keep, len(table.missed))
                done += 1
                made += 1
                if done == options.each or made == options.edits:
                    break
            if made >= options.edits:
                break
    print(table.text())
    print(f"{made} edits, {skipped} programs skipped, {time.monotonic() - started:.0f} s; wrong proofs: {len(table.missed)}")
    return 1 if table.missed else 0


def keep(subject: Subject, folder: pathlib.Path | None, number: int) -> None:
    if folder is None:
        return
    target = folder / str(number)
    target.mkdir(parents=True, exist_ok=True)
    for path in (subject.source, subject.folder / "after.json"):
        shutil.copy(path, target / path.name)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--edits", type=int, default=2500, metavar="N", help="number of edits (default: 2500)")
    parser.add_argument("--seeds", type=seed_range, default=(0, 10**9), metavar="A:B", help="random programs (default: from 0)")
    parser.add_argument("--each", type=int, default=8, metavar="N", help="edits of each graph, rare classes first (default: 8)")
    parser.add_argument("--only", action="append", choices=sorted(EDITS | PAIR_EDITS), metavar="CLASS", help="edits of this class, repeatable")
    parser.add_argument("--pairs", action="store_true", help="edit the forward and the backward graph of joint programs")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="keep the files of wrong proofs")
    parser.add_argument("graphs", nargs="*", type=pathlib.Path, metavar="GRAPH")
    options = parser.parse_args()
    options.fxopt = Fxopt(options.fxopt).program
    campaign.prepare_process()
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
