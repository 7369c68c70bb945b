#!/usr/bin/env python3
"""Compares fxopt's remat with remat_using_tags_for_fwd_loss_bwd_graph on a real training step.

    scripts/peers/remat.py [--fxopt PROGRAM] [--policy POLICY]... [--random N] [--repeat N]
                           [--keep FOLDER]

The step (graph llama1b of make_testdata.py) is traced here, saved, and tagged by fxopt's `sac` or
at random. PyTorch gets the same tags.

  1. Copies. With compat=torch, the same originals are copied and each copy has the same users.
  2. Peaks. For every graph, `fxopt mem` equals to the byte the count of peak_counter.py over fake
     tensors, at the same node, with as many live storages. With tags of `sac`, fxopt's default peak
     is no higher than that of PyTorch's result.
  3. Median times of PyTorch's passes and fxopt's. PyTorch's remat and raise_getitems also
     regenerate the module's Python code.

Exits with 1 if 1 or 2 does not hold. Times are figures, not checks. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

from command import command_line
import make_testdata
import pass_times
import random_tags
import remat_sides
import torch
from fxopt import bridge
from fxopt.form import Json
from fxopt_program import Fxopt
from peak_counter import count_peaks
from remat_sides import FxoptResult, fxopt_result
from torch.fx import GraphModule

POLICIES = ("per-op", "full")
# PyTorch's function does the work of these three passes.
SAME_WORK = "remat{compat=torch},dce,raise-getitems"
MAX_SHOWN = 20


class Report:
    """Prints lines and remembers whether a check failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def check(self, holds: bool, text: str) -> None:
        print(f"  {'ok  ' if holds else 'FAIL'}  {text}")
        if not holds:
            self.failed.append(text)


def compare_copies(report: Report, torch_result: GraphModule, ours: FxoptResult, tagged: Json) -> None:
    theirs = remat_sides.torch_wiring(torch_result)
    wiring = remat_sides.fxopt_wiring(ours.main, tagged, ours.graph_module)
    print(f"  nodes: PyTorch {len(theirs.inputs)}, fxopt {len(wiring.inputs)}")
    print(f"  originals copied: PyTorch {len(theirs.copied())}, fxopt {len(wiring.copied())}")
    edges = [sum(map(len, side.readers().values())) for side in (theirs, wiring)]
    print(f"  readers of copies: PyTorch {edges[0]}, fxopt {edges[1]}")
    lines = remat_sides.differences(theirs, wiring)
    for line in lines[:MAX_SHOWN]:
        print(f"    {line}")
    report.check(not lines and bool(theirs.copied()), f"same originals copied, same readers ({len(lines)} differences)")
    others = [node for node in theirs.inputs.keys() | wiring.inputs if theirs.inputs.get(node) != wiring.inputs.get(node)]
    same_order = list(theirs.inputs) == list(wiring.inputs)
    print(f"  nodes that differ in any input: {len(others)}; schedule {'the same' if same_order else 'differs'}")


def compare_peak(report: Report, fxopt: Fxopt, title: str, graph_module: GraphModule, path: pathlib.Path) -> int:
    """Compares one peak. Returns the largest device's peak as counted."""
    counted = {device: (peak.bytes, peak.node, peak.storages) for device, peak in count_peaks(graph_module).items()}
    measured = fxopt.peaks(path)
    for device in sorted(counted.keys() | measured.keys()):
        sides = [side.get(device, (0, "", 0)) for side in (counted, measured)]
        texts = ["{} at %{}, {} storages".format(*side) for side in sides]
        report.check(sides[0] == sides[1], f"{title}, {device}: counted {texts[0]}; mem {texts[1]}")
    return max(size for size, _, _ in counted.values())


def compare_sides(report: Report, fxopt: Fxopt, file: FxoptResult, live: GraphModule) -> tuple[GraphModule, int, FxoptResult]:
    """Compares both sides' remat of the tagged `file`. Returns the tagged graph, the peak of
    PyTorch's result, and fxopt's default result for the same tags."""
    tagged = remat_sides.tagged(live, file.main)
    theirs = remat_sides.torch_remat(remat_sides.copy_of(tagged))
    ours = fxopt_result(fxopt, file.path, SAME_WORK, file.path.with_name("compat_torch.pb"))
    compare_copies(report, theirs, ours, file.main)
    saved = file.path.with_name("torch.pb")
    bridge.save(theirs, saved, kind="forward_loss_backward", fxopt=fxopt.program)
    limit = compare_peak(report, fxopt, "peak of PyTorch's remat", theirs, saved)
    compare_peak(report, fxopt, f"peak of {SAME_WORK}", ours.graph_module, ours.path)
    default = fxopt_result(fxopt, file.path, "remat,dce", file.path.with_name("remat.pb"))
    return tagged, limit, default


def compare_policy(
    report: Report, fxopt: Fxopt, policy: str, live: GraphModule, saved: pathlib.Path
) -> tuple[GraphModule, pathlib.Path]:
    """Returns the tagged graph, in memory and as a file."""
    folder = saved.parent / policy
    folder.mkdir(exist_ok=True)
    sac = f"sac{{policy={policy}}}"
    print(sac)
    file = fxopt_result(fxopt, saved, sac, folder / "tagged.pb")
    tagged, limit, same_tags = compare_sides(report, fxopt, file, live)
    whole = fxopt_result(fxopt, saved, f"canonicalize,cse,{sac},remat,dce", folder / "default.pb")
    for title, result in (("remat,dce", same_tags), ("canonicalize,cse,sac,remat,dce", whole)):
        peak = compare_peak(report, fxopt, f"peak of {title}", result.graph_module, result.path)
        report.check(peak <= limit, f"{title}: {peak} is no higher than PyTorch's {limit} ({peak / limit - 1:+.2%})")
    return tagged, file.path


def compare_random(report: Report, fxopt: Fxopt, seed: int, live: GraphModule, folder: pathlib.Path) -> None:
    """Checks equal copies and correct peaks for tags unlike any policy's. Either default peak may
    be lower."""
    print(f"random tags, seed {seed}")
    path = folder / f"random{seed}" / "tagged.pb"
    path.parent.mkdir(exist_ok=True)
    subject = random_tags.tag_randomly(live, seed)
    bridge.save(subject, path, kind="forward_loss_backward", fxopt=fxopt.program)
    file = remat_sides.read_result(fxopt, path)
    _, limit, default = compare_sides(report, fxopt, file, subject)
    peak = compare_peak(report, fxopt, "peak of remat,dce", default.graph_module, default.path)
    print(f"  remat,dce: {peak}, PyTorch {limit} ({peak / limit - 1:+.2%})")


def run(options: argparse.Namespace, folder: pathlib.Path) -> int:
    report = Report()
    fxopt = Fxopt(options.fxopt)
    live, info = make_testdata.trace("llama1b")
    saved = folder / "llama1b.pb"
    bridge.save(live, saved, fxopt=fxopt.program, **info)
    print(f"llama1b: {len(live.graph.nodes)} nodes, torch {torch.__version__}, {fxopt.program}")
    compare_peak(report, fxopt, "peak as traced", live, saved)
    tagged = {policy: compare_policy(report, fxopt, policy, live, saved) for policy in options.policy}
    for seed in range(options.random):
        compare_random(report, fxopt, seed, live, folder)
    pass_times.print_times(fxopt, live, saved, tagged, options.repeat)
    print(f"{len(report.failed)} checks failed" if report.failed else "all checks hold")
    return 1 if report.failed else 0


def main(arguments: list[str] | None = None) -> int:
    parser = command_line(__doc__)
    parser.add_argument("--policy", action="append", choices=POLICIES, help="sac policy; repeatable (default: both)")
    parser.add_argument("--random", type=int, default=2, metavar="N", help="also compare N random taggings (default: 2)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each timed pass (default: 3)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="leave all graphs here (default: delete them)")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat takes 1 or more")
    options.policy = list(dict.fromkeys(options.policy or POLICIES))
    try:
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            return run(options, options.keep)
        with tempfile.TemporaryDirectory() as folder:
            return run(options, pathlib.Path(folder))
    except (bridge.ExportError, OSError, RuntimeError, ValueError) as error:
        print(f"remat: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
