"""What the tests beside this file have in common: where things are, and what they are skipped without. Import it first: it puts
the scripts on the path."""

from __future__ import annotations

import contextlib
import pathlib
import sys
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
    """Skips the file where what it imports inside is missing."""
    try:
        yield
    except ImportError as error:
        raise unittest.SkipTest(f"torch is missing: {error}") from error


def need_program() -> None:
    """Skips the file where there is no fxopt program."""
    if find_fxopt() is None:
        raise unittest.SkipTest(NO_PROGRAM)
