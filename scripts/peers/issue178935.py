#!/usr/bin/env python3
"""Shows on the two programs of pytorch issue 178935 that recompute tags are carried out.

    scripts/peers/issue178935.py [--fxopt PROGRAM] [--testdata FOLDER]

selective: PyTorch's trace tags a product for recompute and recomputes nothing: 5 products. After
infer-phase,remat,dce there are 6, and gelu_backward reads, through any aliases, a copy of the
tagged product. vanilla: PyTorch's trace contains the recomputation already: 6 products, which stay
6 even after cse.

Exits with 1 if one of these does not hold. Needs no torch.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

from command import ROOT, command_line
from fxopt.form import Json
from fxopt_program import Fxopt, read_main, recompute_origin

PRODUCT = "aten.mm.default"
ALIASES = ("aten.alias.default", "aten.detach.default")
RECOMPUTE_TAGS = ("TAG_PREFER_RECOMPUTE", "TAG_MUST_RECOMPUTE")
REMAT = "infer-phase,remat,dce"
VANILLA_PIPELINES = (REMAT, "cse", "infer-phase,cse,remat,dce")


def products(main: Json) -> int:
    return sum(node["target"] == PRODUCT for node in main["nodes"])


def saved_product(main: Json) -> Json:
    """The node whose value gelu_backward reads as gelu's input, looking through aliases."""
    nodes = {node["name"]: node for node in main["nodes"]}
    node = next(node for node in main["nodes"] if node["target"] == "aten.gelu_backward.default")
    node = nodes[node["args"][1]["node"]]
    while node["target"] in ALIASES:
        node = nodes[node["args"][0]["node"]]
    return node


class Checks:
    def __init__(self, fxopt: Fxopt, folder: pathlib.Path) -> None:
        self.fxopt = fxopt
        self.folder = folder
        self.failed = 0

    def check(self, holds: bool, text: str) -> None:
        print(f"  {'ok  ' if holds else 'FAIL'}  {text}")
        self.failed += not holds

    def read(self, path: pathlib.Path) -> Json:
        target = self.folder / "read.json"
        self.fxopt.run("convert", str(path), "-o", str(target))
        return read_main(target)

    def after(self, path: pathlib.Path, passes: str) -> Json:
        target = self.folder / "after.json"
        self.fxopt.opt(path, target, passes)
        return read_main(target)

    def count(self, before: int, after: int, path: pathlib.Path, passes: str) -> Json:
        """Runs the passes and checks the number of products; returns the output graph."""
        was, result = products(self.read(path)), self.after(path, passes)
        found = products(result)
        self.check((was, found) == (before, after), f"{passes}: {was} mm -> {found} mm (expected {before} -> {after})")
        return result

    def selective(self, path: pathlib.Path) -> None:
        originals = {int(node.get("uid", 0)): node for node in self.read(path)["nodes"]}
        node = saved_product(self.count(5, 6, path, REMAT))
        origin = recompute_origin(node)
        name, tag = "nothing", ""
        if origin in originals:
            name, tag = originals[origin]["name"], originals[origin].get("tag", "")
        text = f"gelu_backward reads %{node['name']}, {node.get('phase', 'of no phase')}, a copy of {name} {tag}"
        is_copy = name == "mm" and tag in RECOMPUTE_TAGS and node["target"] == originals[origin]["target"] == PRODUCT
        self.check(is_copy and node.get("phase") == "PHASE_BACKWARD", text)


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(Fxopt(options.fxopt), pathlib.Path(folder))
        print("issue178935_selective")
        checks.selective(options.testdata / "issue178935_selective.pb")
        print("issue178935_vanilla")
        for passes in VANILLA_PIPELINES:
            checks.count(6, 6, options.testdata / "issue178935_vanilla.pb", passes)
    print(f"{checks.failed} checks failed" if checks.failed else "all checks hold")
    return 1 if checks.failed else 0


def main(arguments: list[str] | None = None) -> int:
    parser = command_line(__doc__)
    parser.add_argument("--testdata", type=pathlib.Path, default=ROOT / "testdata", metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        return run(options)
    except (KeyError, OSError, RuntimeError, StopIteration) as error:
        print(f"issue178935: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
