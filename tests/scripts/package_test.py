"""The package fxopt without torch: the output of the program as data."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import fxopt
from setting import ROOT, SCRIPTS, needs_program

GRAPH = ROOT / "testdata" / "llama1b.pb"


@needs_program
class Commands(unittest.TestCase):
    def test_mem_and_its_options(self) -> None:
        (graph,) = fxopt.mem(GRAPH)["graphs"]
        self.assertGreater(graph["devices"][0]["peak_bytes"], 10**10)
        with self.assertRaises(fxopt.FxoptError) as caught:
            fxopt.mem(GRAPH, "--budget", "requested=1GiB")
        self.assertEqual(caught.exception.exit_code, 5)

    def test_explain_tags_and_verify(self) -> None:
        self.assertIn("mm", str(fxopt.explain(GRAPH, "mm")))
        self.assertIn("tags", fxopt.tags(GRAPH))
        self.assertTrue(fxopt.verify(GRAPH)["ok"])
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.fxg"
            broken.write_text("graph @g {\n  return (%x,)\n  %x = placeholder()\n}\n", encoding="utf-8")
            with self.assertRaises(fxopt.FxoptError) as caught:
                fxopt.verify(broken)
            self.assertTrue(caught.exception.errors)


class Import(unittest.TestCase):
    def test_it_asks_for_torch_only_where_it_needs_it(self) -> None:
        program = "import sys, fxopt; print('torch' in sys.modules, fxopt.mem.__name__)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=SCRIPTS)
        self.assertEqual(done.stdout, "False mem\n", done.stderr)

    def test_no_program_is_said(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "cannot run fxopt mem: no fxopt program"):
            fxopt.mem(GRAPH, fxopt="/no/such/program")

    def test_an_unknown_name(self) -> None:
        with self.assertRaisesRegex(AttributeError, "no attribute 'sav'"):
            fxopt.sav  # noqa: B018


if __name__ == "__main__":
    unittest.main()
