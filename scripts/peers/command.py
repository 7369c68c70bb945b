"""The repository, the path of the package fxopt, and the command line of the scripts in this folder.
Import it before fxopt."""

from __future__ import annotations

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
if str(ROOT / "scripts") not in sys.path:
    sys.path.insert(0, str(ROOT / "scripts"))


def testdata(folder: pathlib.Path = ROOT / "testdata") -> list[pathlib.Path]:
    """The graphs of testdata."""
    patterns = ("*.pb", "*.pb.zst", "gpu/*.pb.zst", "dumps/*.fxg.zst")
    return [path for pattern in patterns for path in sorted(folder.glob(pattern))]


def command_line(about: str | None) -> argparse.ArgumentParser:
    """A parser with the option --fxopt. about: the documentation of the script."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    return parser


def program_of(options: argparse.Namespace) -> str:
    """The fxopt program that the command line names. Exits with 2 if there is none."""
    from fxopt import tool

    program = tool.find_fxopt(options.fxopt)
    if program is None:
        print(f"{pathlib.Path(sys.argv[0]).stem}: no fxopt program: build it, then give --fxopt or set FXOPT", file=sys.stderr)
        sys.exit(2)
    return program


def seed_range(text: str) -> tuple[int, int]:
    """A range of seeds, written A:B."""
    first, separator, last = text.partition(":")
    if not separator or not first.isdigit() or not last.isdigit() or int(first) >= int(last):
        raise argparse.ArgumentTypeError(f"{text!r} is not A:B with A below B")
    return int(first), int(last)
