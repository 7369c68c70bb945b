#!/usr/bin/env python3
"""Runs random programs before and after fxopt and compares, bit by bit, all that a caller can see.

    scripts/peers/differential.py [--runs N] [--seeds A:B] [--jobs N] [--pipelines N]
                                  [--stop-at-first] [--ignore-objects] [--family NAME] [--json FILE]
    scripts/peers/differential.py --reproduce SEED [--family NAME] --passes PIPELINE [--apply]
                                  [--write FILE.fxg] [--reduce FILE.fxg]
    scripts/peers/differential.py --judge FILE --passes PIPELINE [--apply] [--values FILE.pt]

A seed decides a program: in the same version of PyTorch, the same graph, inputs and pipelines. The
graph is traced by make_fx, torch.export, Dynamo or AOTAutograd and executed on the CPU before and
after each of its pipelines. The comparison covers outputs and mutated inputs and attributes
(values, dtype, sizes, strides, offset, bytes of the storage), which tensors share memory or are one
object, the state of the generator, and exceptions. If autograd runs through a graph, gradients are
compared within a tolerance of 1e-4, since the order in which autograd adds the gradients of one
value is not kept. A program whose own runs differ is skipped and counted. If the proof stops a
pipeline, its result is executed without the proof: WRONG if it differs, ALARM if it agrees.

--judge makes inputs like the values that the file records, and asks for gradients if the file may
be differentiated. --reduce needs a difference that --judge sees; it gives a placeholder the value
that its name had in the whole program.

Forward and backward graphs are executed one after the other. In between, the new values of inputs
that forward returns are written, as PyTorch's runtime does, so that backward would read them.

Left out, because another result is their purpose: `compat` of every pass except `partition`,
dce{random=remove}, dce{assertions=remove}, dce{collectives=remove},
dedup-unshards{reductions=merge}, and passes that are not of class exact. Every other option of a
pass is drawn, with numbers sometimes beyond the end of their range. Buckets of sums run with
--numerics reorders-reductions, as the simulated ranks add up one element after the other.
Collectives are simulated: the other ranks hold other values, and a result is there only after its
wait. Sends and receives are simulated likewise: no option may drop, repeat, exchange or change a
message, move it past another one with the same rank, or write a buffer that is being sent or
received. Strides of dimensions of size 1 are not compared.

Prints one line for each disagreement, then tables by pass and by feature. Exits with 1 if anything
is wrong. --judge loads one file and exits with 1 if the two executions differ, 0 if they are equal,
2 if it cannot be run. Needs torch; no GPU.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from command import command_line, program_of, seed_range
import torch
from differential_parts import campaign, families, files, judging, observe, pipelines, tables, workers
from differential_parts.programs import Unusable
from fxopt.tool import FxoptError

VALUES = "values.pt"


def run_campaign(options: argparse.Namespace) -> int:
    known = pipelines.known_passes(options.fxopt)
    result = tables.Tables([item.name for item in known], ["one object"] if options.ignore_objects else [])
    started = time.monotonic()
    first, last = options.seeds
    told = [options.passes] if options.passes else []
    pool = workers.Pool(options.jobs, options.fxopt, known, options.pipelines, told, options.family)
    for outcome in pool.outcomes(range(first, last)):
        result.add(outcome)
        for run in outcome.runs:
            if result.is_wrong(run) or run.is_stopped:
                print(tables.line(outcome, run), flush=True)
        if result.runs >= options.runs or options.stop_at_first and result.wrong:
            break
    pool.stop()
    print(result.text(time.monotonic() - started, options.jobs))
    if options.json is not None:
        options.json.write_text(json.dumps(result.json(), indent=1) + "\n", encoding="utf-8")
    return 1 if result.wrong else 0


def reproduce(options: argparse.Namespace) -> int:
    """Prints one program, the pipeline's output graph, and both results."""
    with tempfile.TemporaryDirectory() as name:
        subject = campaign.Subject(options.reproduce, options.fxopt, pathlib.Path(name), options.family)
        graph_module = subject.program.graph_module
        print(f"{subject.family}: {', '.join(sorted(subject.program.features))}")
        print(files.listing(graph_module))
        if options.write is not None:
            subject.optimizer.write(options.write)
        if options.passes is None:
            return 0
        run = subject.judge(options.passes, by_apply=options.apply)
        if run.refused is None:
            after = subject.optimize(options.passes, by_apply=options.apply).graph_module
            print(f"after {options.passes}:\n{files.listing(after)}")
            print(observe.shown(subject.seen, campaign.run_graph(subject.program, after)))
        print(f"refused: {run.refused}" if run.refused else "\n".join(run.differences) or "equal")
        if options.reduce is not None and run.differences:
            source = pathlib.Path(name) / "failing.fxg"
            subject.optimizer.write(source)
            torch.save(files.values_of(subject.program), source.with_name(VALUES))
            return reduce(source, options)
        return 1 if run.differences else 0


def reduce(source: pathlib.Path, options: argparse.Namespace) -> int:
    """Lets fxopt shrink a failing file and its pipeline; a server that checks as --judge does is
    loaded once."""
    values = source.with_name(VALUES)
    told = ["--fxopt", options.fxopt, "--values", str(values), *(["--apply"] if options.apply else [])]
    if judge_file(source, options.passes, options, torch.load(values)) != 1:
        print("not reduced: --judge sees no difference in the file", file=sys.stderr)
        return 2
    place = source.with_name("judge")
    # A process of its own: autograd does not run in forks of one that has used it.
    server = [sys.executable, str(pathlib.Path(__file__).resolve()), *told, "--serve", str(place)]
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as judge:
        try:
            while not place.exists() and judge.poll() is None:
                time.sleep(0.05)
            client = [sys.executable, "-I", "-S", judging.__file__, str(place), "{passes}", "{}"]
            command = [options.fxopt, "reduce", str(source), "-o", str(options.reduce), "--passes", options.passes, "--", *client]
            return subprocess.run(command).returncode
        finally:
            judge.kill()


def judge_file(file: pathlib.Path, passes: str, options: argparse.Namespace, known: dict[str, torch.Tensor]) -> int:
    try:
        found = files.judge(file, passes, options.fxopt, known, by_apply=options.apply)
    except (Unusable, FxoptError, RuntimeError, ValueError, OSError) as error:
        print(f"cannot be run: {error}", file=sys.stderr)
        return 2
    print("\n".join(found) or "equal")
    return 1 if found else 0


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def parser() -> argparse.ArgumentParser:
    result = command_line(__doc__)
    result.add_argument("--runs", type=positive, default=20000, metavar="N", help="program x pipeline runs (default: 20000)")
    result.add_argument("--seeds", type=seed_range, default=(0, 10**9), metavar="A:B", help="from A up to B (default: from 0)")
    result.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes (default: 1)")
    result.add_argument("--pipelines", type=positive, default=6, metavar="N", help="pipelines for each program (default: 6)")
    result.add_argument("--family", choices=list(families.FAMILIES), help="programs of this kind only")
    result.add_argument("--passes", metavar="PIPELINE", help="run this pipeline instead of random ones")
    result.add_argument("--stop-at-first", action="store_true", help="stop at the first program that is wrong")
    result.add_argument(
        "--ignore-objects",
        action="store_true",
        help="count, but do not call wrong, if only the objects differ: two results on the same memory, of the same sizes,"
        " that are one object afterwards",
    )
    result.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write counts and disagreements here")
    result.add_argument("--reproduce", type=int, metavar="SEED", help="print one program, before and after --passes")
    result.add_argument("--apply", action="store_true", help="with --reproduce or --judge: by bridge.apply, not on a file")
    result.add_argument("--write", type=pathlib.Path, metavar="FILE", help="with --reproduce: write the program as a graph file")
    result.add_argument("--reduce", type=pathlib.Path, metavar="FILE", help="with --reproduce: write it shrunk by fxopt reduce")
    result.add_argument("--serve", metavar="SOCKET", help="judge the files that clients of this socket name (judging.py)")
    result.add_argument("--values", type=pathlib.Path, metavar="FILE", help="with --judge: inputs by name, as torch.save writes")
    result.add_argument("--judge", type=pathlib.Path, metavar="FILE", help="execute this graph before and after --passes")
    return result


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    options.fxopt = program_of(options)
    campaign.prepare_process()
    known = torch.load(options.values) if options.values is not None else {}
    if options.serve is not None:
        judging.serve(options.serve, lambda file, passes: judge_file(pathlib.Path(file), passes, options, known))
    if options.judge is not None:
        if options.passes is None:
            parser().error("--judge needs --passes")
        return judge_file(options.judge, options.passes, options, known)
    if options.reproduce is None:
        return run_campaign(options)
    try:
        return reproduce(options)
    except Unusable as error:
        print(f"differential: seed {options.reproduce} gives no program: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
