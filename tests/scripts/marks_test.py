"""scripts/peers/marks.py finds a pass that drops marks, and no such pass among those of fxopt.
Needs no torch. Skipped without the fxopt program."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import stat
import sys
import tempfile
import unittest
from unittest import mock

from setting import TESTDATA, need_program

import marks
from fxopt.tool import find_fxopt

need_program()

# Acts as the program, but drops marks of the graph if the first pass is canonicalize.
FORGETFUL = """#!{python}
import json, pathlib, subprocess, sys, tempfile
program, arguments = {program!r}, sys.argv[1:]
if arguments[0] != "opt" or not arguments[arguments.index("--passes") + 1].startswith("canonicalize"):
    sys.exit(subprocess.run([program, *arguments]).returncode)
target = arguments[arguments.index("-o") + 1]
done = subprocess.run([program, *arguments])
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "module.json"
    subprocess.run([program, "convert", target, "-o", str(path)], check=True)
    file = json.loads(path.read_text())
    for graph in file["module"]["graphs"]:
        for node in graph["nodes"][::2]:
            node.pop("meta", None)
    path.write_text(json.dumps(file))
    subprocess.run([program, "convert", str(path), "-o", target], check=True)
sys.exit(done.returncode)
"""


class Marks(unittest.TestCase):
    def judged(self, program: str) -> tuple[int, str]:
        said = io.StringIO()
        graph = str(TESTDATA / "gpt2_joint_twin.pb.zst")
        with mock.patch.object(sys, "argv", ["marks.py", "--quick", "--fxopt", program, graph]), contextlib.redirect_stdout(said):
            code = marks.main()
        return code, said.getvalue()

    def test_no_pass_drops_a_mark(self):
        code, said = self.judged(find_fxopt())
        self.assertEqual(code, 0, said)
        self.assertIn("--strict-tags behind 5 policies: ok", said)

    def test_a_pass_that_drops_marks_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "fxopt"
            program.write_text(FORGETFUL.format(python=sys.executable, program=os.path.abspath(find_fxopt())))
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            code, said = self.judged(str(program))
        self.assertEqual(code, 1, said)
        wrong = [line for line in said.splitlines() if line.startswith("WRONG ")]
        self.assertTrue(wrong)
        self.assertTrue(all(line.startswith("WRONG canonicalize") for line in wrong), said)

    def test_pipelines_have_every_pass_and_pair(self):
        known = [{"name": "a", "options": []}, {"name": "b", "options": [{"name": "o", "type": "enum", "choices": ["x", "y"]}]}]
        texts = marks.pipelines(known, False)
        for text in ("a", "b{o=x}", "b{o=y}", "a,b", "b,a", "b,b"):
            self.assertIn(text, texts)
        self.assertEqual(marks.passes_of("a,b{o=x,p=1},c"), ["a", "b", "c"])


if __name__ == "__main__":
    unittest.main()
