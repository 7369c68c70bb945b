#!/usr/bin/env python3
"""Plants known mistakes in a copy of fxopt, one at a time, and checks whether they are found.

    scripts/peers/planted_bugs.py --build FOLDER             copy the sources and build the program
    scripts/peers/planted_bugs.py --fxopt FOLDER/build/gcc/fxopt [--runs N] [--jobs N] [--only NAME]
                                  [--json FILE]
    scripts/peers/planted_bugs.py --fxopt FOLDER/build/gcc/fxopt --proof [--runs N] [--only NAME]
                                  [--json FILE]
    scripts/peers/planted_bugs.py --fxopt FOLDER/build/gcc/fxopt --choices [--only NAME]
                                  [--json FILE]

The mistakes are those of differential_parts/planted.py: each turns off one legality rule. One
program has all mistakes. FXOPT_PLANTED selects one by number; without it the program is correct. By
default, differential.py must find each mistake. Each campaign stops at its first find, and `fxopt
reduce` shrinks the graph and pipeline. Prints a row for each mistake; exits with 1 if one was not
found. --build needs the packages of scripts/setup.sh; the rest needs torch.

--proof executes nothing: the same programs go through `fxopt opt`, each with every mistake that is
not stopped yet. A mistake is stopped when the proof refuses (FX0420) a result that the program
without the mistake accepts. Prints the runs up to there, the number of runs in which the mistake
changed the end, and, if it was not stopped, the other reports (unproved: a warning).

--choices uses mistakes that no execution shows, but the saved values do. Found: a case of
tests/cases/passes whose pipeline writes another file, or is refused otherwise, than without the
mistake.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent)]

from differential_parts.planted import CHOICES, PLANTED, Edit, Planted

if TYPE_CHECKING:
    from differential_parts import proving

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ("CMakeLists.txt", "CMakePresets.json", "cli", "core", "ir", "passes", "runtime", "schemas", "scripts")
ALL = PLANTED + CHOICES  # a mistake's number is its place here, from 1
CASES = ROOT / "tests" / "cases" / "passes"
ENOUGH_NODES = 12
SWITCH = """#pragma once
#include <cstdlib>
namespace fxopt {
inline bool is_planted(int number) {
  static const char* asked = std::getenv("FXOPT_PLANTED");
  return asked != nullptr && std::atoi(asked) == number;
}
}  // namespace fxopt
"""


def build(folder: pathlib.Path) -> int:
    """Copies the sources, plants every mistake under its number, builds the program."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in SOURCES:
        path = ROOT / name
        (shutil.copytree if path.is_dir() else shutil.copy2)(path, folder / name)
    (folder / "core" / "planted.h").write_text(SWITCH, encoding="utf-8")
    edits = [(number, edit) for number, planted in enumerate(ALL, 1) for edit in planted.edits]
    for file in sorted({edit.file for _, edit in edits}):
        path = folder / file
        text = plant(path.read_text(encoding="utf-8"), [(number, edit) for number, edit in edits if edit.file == file])
        path.write_text(f'#include "core/planted.h"\n{text}', encoding="utf-8")
    subprocess.run(["cmake", "--preset", "gcc", "-DBUILD_TESTING=OFF"], cwd=folder, check=True)
    return subprocess.run(["cmake", "--build", folder / "build" / "gcc", "--target", "fxopt"]).returncode


def plant(text: str, edits: list[tuple[int, Edit]]) -> str:
    """The source with `is_planted(n) ? instead : expression` for each edit. Raises ValueError if an
    edit does not fit."""
    found: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for number, edit in edits:
        before, _, rest = edit.code.partition("«")
        expression, _, after = rest.partition("»")
        pattern = r"\s+".join(re.escape(word) for word in (before + "\0" + expression + "\1" + after).split())
        places = list(re.finditer(pattern.replace("\0", "()").replace("\1", "()"), text))
        if len(places) != 1:
            raise ValueError(f"{edit.file}: {len(places)} places, not one, with: {edit.code}")
        found.setdefault((places[0].start(1), places[0].start(2)), []).append((number, edit.instead))
    last = len(text)
    for (start, end), choices in sorted(found.items(), reverse=True):
        if end > last:
            raise ValueError(f"two mistakes overlap at: {text[start:end]}")
        chosen = text[start:end]
        for number, instead in choices:
            chosen = f"is_planted({number}) ? ({instead}) : ({chosen})"
        text, last = f"{text[:start]}({chosen}){text[end:]}", start
    return text


def hunt(planted: Planted, options: argparse.Namespace, folder: pathlib.Path) -> dict[str, object]:
    """Runs one campaign with the mistake, and reduces its find."""
    script = [sys.executable, str(pathlib.Path(__file__).resolve().parent / "differential.py"), "--fxopt", options.fxopt]
    environment = {**os.environ, "FXOPT_PLANTED": str(ALL.index(planted) + 1)}
    script += ["--family", planted.family] if planted.family else []
    only = ["--passes", planted.passes] if planted.passes else []
    told = ["--stop-at-first", "--pipelines", "1", "--runs", str(options.runs), "--jobs", str(options.jobs)]
    report, small = folder / "report.json", folder / "small.fxg"
    subprocess.run([*script, *told, *only, "--json", str(report)], env=environment, stdout=subprocess.DEVNULL)
    result = json.loads(report.read_text(encoding="utf-8"))
    row: dict[str, object] = {"name": planted.name, "rule": planted.rule, "runs": result["runs"], "found": result["wrong"] > 0}
    for line in [line for line in result["disagreements"] if line.startswith("WRONG")]:
        seed, passes = re.match(r"WRONG seed (\d+) .* --passes '(.*?)'", line).groups()
        row |= {"seed": int(seed), "passes": passes, "seen": line.rpartition("': ")[2] or line}
        small.unlink(missing_ok=True)
        how = ["--apply"] if " by apply: " in line else []
        reduced = [*script, "--reproduce", seed, "--passes", passes, *how, "--reduce", str(small)]
        subprocess.run(reduced, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if small.exists():
            shown = subprocess.run([options.fxopt, "show", "--summary", "--json", str(small)], capture_output=True, text=True)
            row["nodes"] = sum(graph["nodes"] for graph in json.loads(shown.stdout)["result"]["files"][0]["graphs"])
            break
    return row


def shown(row: dict[str, object]) -> str:
    nodes = row.get("nodes", "-")
    found = f"found, seed {row['seed']}, {row['passes']}" if row["found"] else "NOT FOUND"
    return f"{row['name']:34}{row['runs']:6} runs {nodes!s:>4} nodes  {found}"


def shown_proof(row: proving.Row) -> str:
    stop = row.stopped
    others = "".join(f"; {code}: seed {other.seed}, {other.passes}" for code, other in row.others.items())
    told = f"stopped, seed {stop.seed}, {stop.passes}" if stop is not None else f"NOT STOPPED{others}"
    return f"{row.name:34}{row.runs:6} runs {row.changed:4} changed  {told}"


def ask_proof(chosen: list[Planted], options: argparse.Namespace) -> int:
    """Finds the mistakes that the proof alone stops."""
    sys.path[:0] = [str(ROOT / "scripts")]
    from differential_parts import proving

    rows = {ALL.index(planted) + 1: proving.Row(planted.name, planted.rule) for planted in chosen}
    for row in proving.judge(rows, options.fxopt, options.runs):
        print(shown_proof(row), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows.values()], indent=1) + "\n", encoding="utf-8")
    stopped = sum(row.stopped is not None for row in rows.values())
    print(f"{stopped} of {len(rows)} stopped by the proof")
    return 0 if stopped == len(rows) else 1


def ask_cases(chosen: list[Planted], options: argparse.Namespace, folder: pathlib.Path) -> int:
    """Finds the cases that show each mistake."""
    cases: list[tuple[str, pathlib.Path, str]] = []
    for source in sorted(CASES.glob("*/*.fxg")):
        text = source.read_text(encoding="utf-8").partition("\n=====")[0]
        if (found := re.search(r"^# passes: (.*?)(?:  |$)", text, re.MULTILINE)) and "\n-----" not in text:
            cases.append((f"{source.parent.name}/{source.stem}", folder / f"{len(cases)}.fxg", found[1]))
            cases[-1][1].write_text(text + "\n", encoding="utf-8")
    without = [_end(options.fxopt, path, passes, 0) for _, path, passes in cases]
    rows = []
    for planted in chosen:
        number = ALL.index(planted) + 1
        told = [name for (name, path, passes), end in zip(cases, without) if _end(options.fxopt, path, passes, number) != end]
        rows.append({"name": planted.name, "rule": planted.rule, "cases": told})
        print(f"{planted.name:34}{f'found by {len(told)} cases, {told[0]}' if told else 'NOT FOUND'}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    found = sum(bool(row["cases"]) for row in rows)
    print(f"{found} of {len(rows)} found by {len(cases)} cases")
    return 0 if found == len(rows) else 1


def _end(fxopt: str, path: pathlib.Path, passes: str, number: int) -> tuple[int, list[str], str]:
    command = [fxopt, "opt", str(path), "-o", "-", "--passes", passes, "--no-reproducer"]
    done = subprocess.run(command, env={**os.environ, "FXOPT_PLANTED": str(number)}, capture_output=True, text=True)
    return done.returncode, re.findall(r"error\[\w+\]", done.stderr), done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Asks whether differential.py finds mistakes that are planted in fxopt.")
    parser.add_argument("--build", type=pathlib.Path, metavar="FOLDER", help="build the program with the mistakes here")
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the program with the mistakes")
    parser.add_argument("--proof", action="store_true", help="execute nothing; count the mistakes that the proof stops")
    parser.add_argument("--choices", action="store_true", help="the mistakes that no execution shows: find cases that do")
    parser.add_argument("--runs", type=int, default=2000, metavar="N", help="at most, for each mistake (default: 2000)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes of a campaign (default: 1)")
    parser.add_argument("--only", metavar="NAME", help="only the mistakes whose name holds this")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows here")
    options = parser.parse_args()
    if options.build is not None:
        return build(options.build.resolve())
    if options.fxopt is None:
        parser.error("--build FOLDER or --fxopt PROGRAM")
    known = CHOICES if options.choices else PLANTED
    chosen = [planted for planted in known if options.only is None or options.only in planted.name]
    if options.proof:
        return ask_proof(chosen, options)
    if options.choices:
        with tempfile.TemporaryDirectory() as folder:
            return ask_cases(chosen, options, pathlib.Path(folder))
    rows = []
    for planted in chosen:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(hunt(planted, options, pathlib.Path(folder)))
        print(shown(rows[-1]), flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    found = sum(bool(row["found"]) for row in rows)
    small = sum(isinstance(row.get("nodes"), int) and row["nodes"] <= ENOUGH_NODES for row in rows)
    print(f"{found} of {len(rows)} found, {small} reduced to at most {ENOUGH_NODES} nodes")
    return 0 if found == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
