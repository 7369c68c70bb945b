#!/usr/bin/env python3
"""Checks fxopt's predictions on a GPU.

    scripts/gpu_check.sh [STAGE...] [--out FILE] [--fxopt PROGRAM] [--seconds N]
    scripts/gpu_check.sh --dry-run [STAGE...] [--no-limits]
    scripts/gpu_check.sh --pack FOLDER
    scripts/gpu_check.sh --list

Runs the named stages (default: all), the most valuable first. Each stage has a time limit. Each
unit of work adds one row to FILE, a JSON list that is complete at any moment. A run resumes an
earlier one on the same machine and retries failed units. It prints a table for each stage at the
end.

--dry-run needs no GPU: it uses small shapes, over fake tensors or on the CPU. The limits suit a
GPU; --no-limits lets a slow machine finish. --pack copies everything except Python and torch to
FOLDER, for another machine, and prints its size. Needs torch, and transformers for the stage
llama1b; no network and no compiler. Exits with 1 if a unit failed or was not reached.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "peers")]

from fxopt import tool
from pack import make_pack
from results import Results, Row, slug
from stage import ROOT, Context, Process, Stage, all_stages


# ---- the machine


def machine_of(context: Context) -> Row:
    """Returns the versions that a result is valid for. Rows of other machines stay in the file but
    are not resumed."""
    card, driver = "no GPU", ""
    if not context.is_dry:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        found = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        card, driver = (part.strip() for part in found.split(",", 1))
    version = subprocess.run([context.fxopt, "--version"], capture_output=True, text=True, check=True).stdout.split()
    return {"card": card, "driver": driver, "torch": version_of("torch"), "fxopt": version[-1]}


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def find_program(option: str | None) -> str:
    packed = ROOT / "bin" / "fxopt"
    program = str(packed) if option is None and packed.exists() else tool.find_fxopt(option)
    if program is None:
        raise RuntimeError("no fxopt program: build it, then pass --fxopt or set FXOPT")
    return str(pathlib.Path(shutil.which(program) or program).resolve())


def default_path(context: Context, machine: Row) -> pathlib.Path:
    """Returns the default file of results: a card has its own in testdata/measured."""
    if context.is_dry:
        return pathlib.Path("gpu_check.json")
    return ROOT / "testdata" / "measured" / f"{slug(machine['card'])}.json"


# ---- processes


@dataclass
class Progress:
    """The outcome of one stage in this run."""

    stage: Stage
    seconds: float = 0
    failed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # not reached


class Worker:
    """A process that runs units of one stage. It ends whenever this process ends."""

    def __init__(self, stage: Stage, context: Context, process: Process, keys: list[str]) -> None:
        command = [sys.executable, str(HERE / "main.py"), "--worker", stage.name, "--fxopt", context.fxopt]
        command += ["--stages", str(context.stages)]
        command += [*(["--dry-run"] if context.is_dry else []), "--keys", json.dumps(keys)]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTORCH_")}
        environment = inherited | process.environment
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment,
            start_new_session=True,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def next_line(self, seconds: float) -> str | None:
        """Returns the next line, None at the end of output. Raises queue.Empty after `seconds`
        without one."""
        return self._lines.get(timeout=max(seconds, 0.001))

    def stop(self) -> None:
        with_group = os.getpgid(self._process.pid) if self._process.poll() is None else None
        if with_group is not None:
            os.killpg(with_group, signal.SIGKILL)
        self._process.wait()

    def why_ended(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        said = [line for line in self._errors.read().splitlines() if line.strip()]
        return f"the process ended with {code}" + (f": {said[-1][:300]}" if said else "")


def run_process(stage: Stage, context: Context, process: Process, results: Results, machine: Row, finish: float) -> Progress:
    """Runs the process's units that have no result yet. If a unit ends the process, a new process
    runs the rest."""
    progress = Progress(stage)
    done = results.done(stage.name, machine)
    todo = [key for key in process.keys if key not in done]
    while todo and time.monotonic() < finish:
        worker = Worker(stage, context, process, todo)
        begun: str | None = None
        since = time.monotonic()
        try:
            while (line := worker.next_line(finish - time.monotonic())) is not None:
                told = json.loads(line)
                if told["row"] is None:
                    begun, since = told["key"], time.monotonic()
                    continue
                begun = None
                enter(results, stage, machine, told["key"], told["row"], time.monotonic() - since, progress)
                todo.remove(told["key"])
        except queue.Empty:
            break
        finally:
            worker.stop()
        failed = begun or (todo[0] if todo else None)
        if failed is not None:
            row: Row = {"error": worker.why_ended()}
            enter(results, stage, machine, failed, row, time.monotonic() - since, progress)
            todo.remove(failed)
    progress.missing = todo
    return progress


def enter(results: Results, stage: Stage, machine: Row, key: str, row: Row, seconds: float, progress: Progress) -> None:
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    head: Row = {"stage": stage.name, "key": key, "machine": machine, "date": date, "seconds": round(seconds, 2)}
    results.add(head | row)
    if "error" in row:
        progress.failed.append(key)
    print(f"{stage.name}: {key}: {row.get('error', 'done')} ({seconds:.1f} s)", file=sys.stderr, flush=True)


def run_stage(stage: Stage, context: Context, results: Results, machine: Row, finish: float | None) -> Progress:
    """Runs one stage. finish: the end of all stages by time.monotonic(); None: no limits, for this
    stage either."""
    start = time.monotonic()
    finish = start + threading.TIMEOUT_MAX / 2 if finish is None else min(finish, start + stage.seconds)
    progress = Progress(stage)
    for process in stage.processes(context):
        found = run_process(stage, context, process, results, machine, finish)
        progress.failed += found.failed
        progress.missing += found.missing
    progress.seconds = time.monotonic() - start
    return progress


def work(stage: Stage, context: Context, keys: list[str]) -> int:
    """Runs units in the worker process. Only results go to standard output; other output goes to
    standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for key, row in stage.run(context, keys):
        print(json.dumps({"key": key, "row": row}), file=out, flush=True)
    return 0


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


# ---- report


def report(
    stages: list[Stage], results: Results, machine: Row, progress: list[Progress], has_limits: bool
) -> list[str]:
    lines = [f"{machine['card']}, torch {machine['torch']}, fxopt {machine['fxopt']}"]
    for stage in stages:
        rows = results.of(stage.name, machine)
        good = [row for row in rows if "error" not in row]
        lines += ["", f"## {stage.name}: {stage.about}", ""]
        lines += stage.table(good) if good else ["nothing measured"]
        for ending, text in (stage.files(good) if good else {}).items():
            path = results.path.with_suffix(ending)
            path.write_text(text, encoding="utf-8")
            lines.append(f"written: {path}")
        lines += [f"failed: {row['key']}: {row['error']}" for row in rows if "error" in row]
    lines.append("")
    for each in progress:
        missing = f", {len(each.missing)} not reached" if each.missing else ""
        failed = f", {len(each.failed)} failed" if each.failed else ""
        taken = f"{each.seconds:.0f} s of at most {each.stage.seconds} s" if has_limits else f"{each.seconds:.0f} s"
        lines.append(f"{each.stage.name}: {taken}{failed}{missing}")
    lines.append(f"{len(results.rows)} rows in {results.path}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="gpu_check.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="the stages to run, see --list (default: all)")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="results file (default: testdata/measured/CARD.json)")
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: the pack's, $FXOPT, PATH)")
    parser.add_argument("--seconds", type=float, default=420, metavar="N", help="limit for all stages together (default: 420)")
    parser.add_argument("--no-limits", action="store_true", help="let each stage run to its end")
    parser.add_argument("--dry-run", action="store_true", help="run without a GPU, with small shapes")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FOLDER", help="copy everything for another machine, print its size")
    parser.add_argument("--list", action="store_true", help="print the stages")
    parser.add_argument("--stages", dest="folder", type=pathlib.Path, default=HERE / "stages", help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--keys", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    stages = all_stages(options.folder)
    if options.list:
        print("\n".join(f"{stage.name:9} {stage.about}; at most {stage.seconds} s" for stage in stages))
        return 0
    if unknown := set(options.stages) - {stage.name for stage in stages}:
        parser.error(f"unknown stages: {', '.join(sorted(unknown))}; stages are {', '.join(stage.name for stage in stages)}")
    try:
        context = Context(find_program(options.fxopt), options.dry_run, options.folder)
        if options.worker:
            return work(next(stage for stage in stages if stage.name == options.worker), context, json.loads(options.keys))
        if options.pack is not None:
            print(make_pack(options.pack, context.fxopt))
            return 0
        if not options.dry_run and shutil.which("nvidia-smi") is None:
            raise RuntimeError("no GPU found (no nvidia-smi); pass --dry-run to run without one")
        machine = machine_of(context)
        results = Results(options.out or default_path(context, machine))
    except (OSError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 1
    stages = [stage for stage in stages if not options.stages or stage.name in options.stages]
    finish = None if options.no_limits else time.monotonic() + options.seconds
    progress = []
    try:
        for stage in stages:
            progress.append(run_stage(stage, context, results, machine, finish))
    except KeyboardInterrupt:
        print("\n".join(report(stages, results, machine, progress, finish is not None)))
        return 130
    print("\n".join(report(stages, results, machine, progress, finish is not None)))
    return 1 if any(each.failed or each.missing for each in progress) else 0


if __name__ == "__main__":
    sys.exit(main())
