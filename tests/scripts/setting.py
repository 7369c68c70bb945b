"""The paths and skip conditions that the tests beside this file share. Import it first: it puts the
scripts on the path."""

from __future__ import annotations

import contextlib
import importlib.util
import pathlib
import sys
import tempfile
import unittest
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
TESTDATA = ROOT / "testdata"
sys.path[:0] = [str(SCRIPTS), str(SCRIPTS / "peers"), str(ROOT / "tests" / "scripts")]

from fxopt.tool import find_fxopt  # noqa: E402

NO_PROGRAM = "the fxopt program is missing: build it, then set FXOPT or put it on PATH"
needs_program = unittest.skipIf(find_fxopt() is None, NO_PROGRAM)


@contextlib.contextmanager
def imports_torch() -> Iterator[None]:
    """Skips the file if an import inside the block fails."""
    try:
        yield
    except ImportError as error:
        raise unittest.SkipTest(f"torch is missing: {error}") from error


def need_program() -> None:
    """Skips the file if the fxopt program is missing."""
    if find_fxopt() is None:
        raise unittest.SkipTest(NO_PROGRAM)


def need_safetensors(test: unittest.TestCase) -> None:
    """Skips the rest of the test if the package is missing, which large constants need."""
    if importlib.util.find_spec("safetensors") is None:
        test.skipTest("the package safetensors is missing")


class InFolder(unittest.TestCase):
    """Tests with a temporary folder of their own."""

    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
