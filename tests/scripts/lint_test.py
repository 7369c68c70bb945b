"""Ruff finds nothing in the Python sources. Skipped without ruff."""

import importlib.util
import shutil
import subprocess
import sys
import unittest

from setting import ROOT

RUFF = [sys.executable, "-m", "ruff"] if importlib.util.find_spec("ruff") else [shutil.which("ruff")]


@unittest.skipIf(RUFF[0] is None, "no ruff: pip install ruff")
class Lint(unittest.TestCase):
    def test_ruff_finds_nothing(self) -> None:
        config = ROOT / "scripts" / "pyproject.toml"
        command = [*RUFF, "check", "--no-cache", "--config", str(config), str(ROOT / "scripts"), str(ROOT / "tests" / "scripts")]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
