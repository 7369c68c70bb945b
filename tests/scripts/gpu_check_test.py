"""scripts/gpu_check.sh without a GPU: runs that are cut off, and a dry run of all stages if torch
is installed."""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from setting import ROOT, InFolder, needs_program

from fxopt.tool import find_fxopt

MAIN = ROOT / "scripts" / "gpu_check" / "main.py"
HEAD = """
import os, pathlib, sys, time
from stage import Process, Stage, each_unit
from results import table
FOLDER = pathlib.Path(__file__).parent
def table_of(rows):
    return table(["key", "value"], [[row["key"], row["value"]] for row in rows])
def unit(key):
    with open(FOLDER / "ran.txt", "a") as ran:
        print(key, os.getpid(), file=ran, flush=True)
    return act(key)
def run(context, keys):
    yield from each_unit(keys, unit)
def stage(name, count, seconds=60, processes=None):
    made = processes or [Process([f"{name}{number}" for number in range(count)])]
    return Stage(name, f"the stage {name}", 1, seconds, lambda context: made, run, table_of)
"""


def has_torch() -> bool:
    return subprocess.run([sys.executable, "-c", "import torch, transformers"], capture_output=True).returncode == 0


class Folder(InFolder):
    """A folder with stages of its own and with the results of their runs."""

    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "results.json"
        self.stages = self.folder / "stages"
        self.stages.mkdir()

    def write(self, name: str, text: str) -> None:
        (self.stages / f"{name}.py").write_text(HEAD + text, encoding="utf-8")

    def command(self, *arguments: str) -> list[str]:
        stages = ["--stages", str(self.stages)]
        return [sys.executable, str(MAIN), "--dry-run", "--out", str(self.out), "--fxopt", str(find_fxopt()), *stages, *arguments]

    def run_stages(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True)

    def rows(self) -> dict[str, dict]:
        return {row["key"]: row for row in json.loads(self.out.read_text(encoding="utf-8"))}

    def ran(self) -> list[str]:
        path = self.stages / "ran.txt"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


@needs_program
class Runs(Folder):
    def test_each_unit_gives_a_row_and_the_next_run_has_nothing_to_do(self) -> None:
        self.write("a", "def act(key): return {'value': len(key)}\nSTAGE = stage('a', 3)\n")
        done = self.run_stages()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["value"] for row in self.rows().values()], [2, 2, 2])
        self.assertIn("| a2  | 2     |", done.stdout)
        self.assertEqual(self.run_stages().returncode, 0)
        self.assertEqual(self.ran(), ["a0", "a1", "a2"])

    def test_a_unit_that_fails_costs_no_other_and_is_tried_again(self) -> None:
        self.write("a", "def act(key): return {'value': 1 // (key != 'a1')}\nSTAGE = stage('a', 3)\n")
        done = self.run_stages()
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: a1: ZeroDivisionError", done.stdout)
        self.run_stages()
        self.assertEqual(self.ran(), ["a0", "a1", "a2", "a1"])

    def test_a_unit_that_ends_its_process_costs_no_other(self) -> None:
        self.write("a", "def act(key):\n    if key == 'a1': os.kill(os.getpid(), 11)\n    return {'value': 1}\nSTAGE = stage('a', 3)\n")
        self.assertEqual(self.run_stages().returncode, 1)
        rows = self.rows()
        self.assertEqual((rows["a0"]["value"], rows["a2"]["value"]), (1, 1))
        self.assertIn("ended with -11", rows["a1"]["error"])

    def test_a_limit_ends_a_stage_and_not_the_next(self) -> None:
        self.write("a", "def act(key):\n    time.sleep(0.7)\n    return {'value': 1}\nSTAGE = stage('a', 9, seconds=2)\n")
        self.write("b", "def act(key): return {'value': 1}\nSTAGE = stage('b', 1)\n")
        done = self.run_stages()
        self.assertEqual(done.returncode, 1)
        self.assertIn("b0", self.rows())
        self.assertRegex(done.stdout, r"a: 2 s of at most 2 s, \d not reached")

    def test_without_limits_a_stage_ends_by_itself(self) -> None:
        self.write("a", "def act(key):\n    time.sleep(0.4)\n    return {'value': 1}\nSTAGE = stage('a', 4, seconds=1)\n")
        done = self.run_stages("--no-limits")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^a: \d s$")

    def test_what_units_print_is_no_result(self) -> None:
        self.write("a", "def act(key):\n    print('{}')\n    os.write(1, b'[')\n    return {'value': 1}\nSTAGE = stage('a', 2)\n")
        self.assertEqual(self.run_stages().returncode, 0)

    def test_a_process_gets_its_environment(self) -> None:
        text = "def act(key): return {'value': os.environ['SETTING']}\n"
        self.write("a", text + "STAGE = stage('a', 0, processes=[Process([k], {'SETTING': k}) for k in ('x', 'y')])\n")
        self.assertEqual(self.run_stages().returncode, 0)
        self.assertEqual({key: row["value"] for key, row in self.rows().items()}, {"x": "x", "y": "y"})

    def test_cut_off_at_any_moment_the_file_is_whole_and_the_next_run_goes_on(self) -> None:
        self.write("a", "def act(key):\n    time.sleep(0.02)\n    return {'value': 'x' * 9000}\nSTAGE = stage('a', 60)\n")
        dice = random.Random(7)
        counts = []
        for _ in range(50):
            running = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(dice.uniform(0, 0.6))
            running.kill()
            running.wait()
            counts.append(len(self.rows()) if self.out.exists() else 0)
        self.assertEqual(counts, sorted(counts))
        self.assertEqual(self.run_stages().returncode, 0)
        self.assertEqual(len(self.rows()), 60)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(".")], [])

    def test_the_worker_ends_with_the_runner(self) -> None:
        self.write("a", "def act(key): time.sleep(600)\nSTAGE = stage('a', 1)\n")
        running = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while not self.ran() and time.monotonic() < until:
            time.sleep(0.05)
        worker = int((self.stages / "ran.txt").read_text().split()[1])
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        while pathlib.Path(f"/proc/{worker}").exists() and time.monotonic() < until:
            time.sleep(0.05)
        self.assertFalse(pathlib.Path(f"/proc/{worker}").exists())

    def test_a_file_that_is_no_list_of_rows_is_left_alone(self) -> None:
        self.write("a", "def act(key): return {'value': 1}\nSTAGE = stage('a', 1)\n")
        self.out.write_text('{"mine": 1}\n')
        self.assertEqual(self.run_stages().returncode, 1)
        self.assertEqual(self.out.read_text(), '{"mine": 1}\n')


@needs_program
class Shipped(unittest.TestCase):
    def call(self, script: str, *arguments: str) -> str:
        command = [sys.executable, str(ROOT / "scripts" / script), *arguments, "--fxopt", str(find_fxopt())]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_pack_is_small_enough_to_travel(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "pack"
            self.assertIn("scripts/gpu_check.sh", self.call("gpu_check/main.py", "--pack", str(folder)))
            self.assertLess(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()), 60e6)
            listed = subprocess.run([str(folder / "scripts" / "gpu_check.sh"), "--list"], capture_output=True, text=True)
            self.assertEqual([line.split()[0] for line in listed.stdout.splitlines()], ["bits", "run", "memory", "llama1b", "profile"])

    def test_the_table_of_the_page_is_what_is_predicted_and_measured(self) -> None:
        table = self.call("peers/measured.py").split("\n\n")[0]
        self.assertIn(table, (ROOT / "cli/topics/memory.md").read_text(encoding="utf-8"))


@needs_program
@unittest.skipUnless(has_torch(), "torch or transformers is missing")
class DryRun(unittest.TestCase):
    def test_all_stages(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            out = pathlib.Path(name) / "results.json"
            options = ["--dry-run", "--no-limits", "--out", str(out), "--fxopt", str(find_fxopt())]
            command = [sys.executable, str(MAIN), *options]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            rows = json.loads(out.read_text(encoding="utf-8"))
            self.assertTrue(out.with_suffix(".device").exists())
        of = {stage: [row for row in rows if row["stage"] == stage] for stage in ("bits", "run", "memory", "llama1b", "profile")}
        self.assertEqual([len(found) for found in of.values()], [6, 5, 72, 6, 17])
        for row in of["bits"]:
            self.assertGreaterEqual(row["outputs"], 29, row["key"])
            self.assertEqual(row["differing"], 0, row["key"])
        for row in of["run"]:
            self.assertGreater(row["seconds"], 0, row["key"])
        for row in of["memory"]:
            self.assertEqual(row["measured"]["1"]["requested"], row["predicted"]["requested"], row["key"])
            self.assertEqual(row.get("first_difference", ""), "", row["key"])
        for row in of["llama1b"]:
            self.assertEqual(row["bits"]["differ"], 0, row["key"])
            self.assertEqual(row.get("predicted_ideal_peak", row["first_step"]["requested"]), row["first_step"]["requested"])


if __name__ == "__main__":
    unittest.main()
