#!/usr/bin/env python3
"""Prints the memory that `fxopt mem` predicts for a graph beside the memory measured on a GPU.

    scripts/peers/gpu_memory.py FILE [--fxopt PROGRAM] [--profile PROFILE] [--steps N]
                                [--json OUT.json] [--snapshots FOLDER] [--dry-run]

Runs the graph on the CUDA device that it names, with random inputs of the right sizes, under
no_grad, as the code that torch.fx generates. One process for classic and one for expandable
segments each start with an empty allocator. They record the peaks of the first step and of step N,
inputs included: requested, allocated, active and reserved bytes.

Another process runs the graph node by node, twice, and bills every allocation to a node. It prints
the first difference between the allocations and those in the graph, and the memory that each
operator takes besides its results: the workspaces and temporaries that a device profile needs.
--json writes them, node by node.

Collectives run in process groups without other ranks: they allocate, and move nothing. Graphs whose
sizes depend on data, and graphs without memory on CUDA, are skipped with the reason. Inputs belong
to the caller, donated or not. Known reasons why the run may differ from the prediction are printed.

--dry-run needs no GPU: everything but the measurement runs over fake tensors, with a replacement
for the allocator that knows requested bytes only. --snapshots keeps PyTorch's memory snapshots of
step 1. Exits with 1 if nothing could be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys

from command import command_line
import memory
import torch
from cuda_meter import PEAKS
from fxopt.form import Json
from fxopt_program import Fxopt
from memory_runs import Skip, bill, measure, prepare

SEGMENTS = {"classic": "expandable_segments:False", "expandable": "expandable_segments:True"}


def task(options: argparse.Namespace, fxopt: Fxopt) -> Json:
    """The result of a process of its own: {"error": text} if it failed."""
    try:
        subject = prepare(options.file, fxopt)
        if options.task == "bill":
            return bill(subject, options.dry_run)
        name = f"{memory.name_of(options.file)}.{options.segments}.pickle"
        snapshot = None if options.snapshots is None else options.snapshots / name
        return measure(subject, options.steps, options.dry_run, snapshot)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}


def task_apart(kind: str, segments: str, options: argparse.Namespace) -> Json:
    command = [sys.executable, __file__, str(options.file), "--task", kind, "--segments", segments]
    command += ["--steps", str(options.steps), *(["--dry-run"] if options.dry_run else [])]
    if options.snapshots is not None:
        command += ["--snapshots", str(options.snapshots)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTORCH_CUDA_ALLOC_CONF"}
    environment["PYTORCH_ALLOC_CONF"] = SEGMENTS[segments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


# ---- report


def peak_lines(segments: str, measured: Json, predicted: dict[str, int]) -> list[str]:
    """Rows of the table, one for each kind of peak."""
    lines = []
    for kind in PEAKS:
        cells = [segments, kind, str(predicted[kind])]
        for peaks in measured.values():
            size = peaks.get(kind)
            cells += ["-", "-"] if size is None else [str(size), f"{size / predicted[kind]:.4f}" if predicted[kind] else "-"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def operator_lines(title: str, operators: Json) -> list[str]:
    if not operators:
        return [f"{title}: none"]
    lines = [f"{title}:", "", "| operator | nodes | bytes at most | at | sizes there |", "|---|---|---|---|---|"]
    for name, row in operators.items():
        cells = [name, row["nodes"], row["peak_bytes"], f"%{row['at']}", ", ".join(map(str, row["sizes"][:8]))]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def report(result: Json, steps: int) -> list[str]:
    lines = [f"{result['graph']}, torch {result['torch']}, {result['device']}", *result["remarks"], ""]
    lines.append(f"| segments | peak | predicted | step 1 | ratio | step {steps} | ratio |")
    lines.append("|---|---|---|---|---|---|---|")
    for segments, measured in result["measured"].items():
        if text := measured.get("error"):
            lines.append(f"| {segments} | {text} | - | - | - | - | - |")
        else:
            lines += peak_lines(segments, measured, result["predicted"][segments])
    billed = result["billed"]
    if text := billed.get("error"):
        return [*lines, "", f"not billed: {text}"]
    lines += ["", f"first difference: {billed['first_difference'] or 'none'}"]
    lines += [f"first difference of results: {billed['first_difference_of_results'] or 'none'}", ""]
    lines += [*operator_lines("beside results, each step", billed["operators"]), ""]
    return [*lines, *operator_lines("beside results, the first step alone", billed["once"])]


def collect(options: argparse.Namespace, fxopt: Fxopt) -> Json:
    """All results for one graph. Raises Skip for one that cannot be measured."""
    subject = prepare(options.file, fxopt)
    if not options.dry_run and not torch.cuda.is_available():
        raise Skip("there is no GPU; --dry-run needs none")
    peaks = fxopt.allocator_peaks(options.file, subject.sizes, options.profile)
    measured = {segments: task_apart("measure", segments, options) for segments in SEGMENTS}
    return {
        "graph": options.file.name,
        "torch": torch.__version__,
        "device": "no GPU" if options.dry_run else torch.cuda.get_device_name(subject.device),
        "remarks": subject.remarks,
        "predicted": peaks[str(subject.device)],
        "measured": measured,
        "billed": task_apart("bill", "classic", options),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = command_line(__doc__)
    parser.add_argument("file", type=pathlib.Path, metavar="FILE", help="a graph file")
    parser.add_argument("--profile", metavar="PROFILE", help="the device profile for fxopt (its --device; default: none)")
    parser.add_argument("--steps", type=int, default=3, metavar="N", help="the last step measured (default: 3)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--snapshots", type=pathlib.Path, metavar="FOLDER", help="leave PyTorch's snapshots of step 1 there")
    parser.add_argument("--dry-run", action="store_true", help="over fake tensors, without a GPU")
    parser.add_argument("--task", choices=["measure", "bill"], help=argparse.SUPPRESS)
    parser.add_argument("--segments", choices=list(SEGMENTS), default="classic", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.steps < 2:
        parser.error("--steps takes 2 or more")
    try:
        fxopt = Fxopt(options.fxopt)
        # for the loader and the processes below
        os.environ["FXOPT"] = str(pathlib.Path(fxopt.program).resolve())
        if options.task:
            print(json.dumps(task(options, fxopt)))
            return 0
        result = collect(options, fxopt)
    except Skip as reason:
        print(f"gpu_memory: {options.file.name} is skipped: {reason}", file=sys.stderr)
        return 1
    except (OSError, RuntimeError, ValueError) as error:
        print(f"gpu_memory: {error}", file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print("\n".join(report(result, options.steps)))
    return 1 if any("error" in found for found in (*result["measured"].values(), result["billed"])) else 0


if __name__ == "__main__":
    sys.exit(main())
