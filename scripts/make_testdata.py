#!/usr/bin/env python3
"""Makes the graphs of testdata/ that come from PyTorch, and their part of testdata/README.md.

    scripts/make_testdata.py [--fxopt PROGRAM] [-o testdata] [--form pb.zst|pb|fxg|json] [NAME...]
    scripts/make_testdata.py [--mesh AxB] --rank R [--rank R]... -o FOLDER NAME...
    scripts/make_testdata.py --list | --substitutions

Needs torch; some families need torchvision, transformers or torchtitan. No GPU is needed or used.
The traces are in traces/, one file per family.

Files of testdata are for one rank, mostly for the first. --rank writes FOLDER/NAME_rankR.pb
for each
given rank: constants differ between ranks, such as the part of the vocabulary that a rank holds.
    --mesh
uses another mesh: FSDP over A and tensor parallelism over B; for a mixture of experts, FSDP over A
    * B and expert parallelism over B.

As a module: trace(name) returns a graph in memory, inputs(name) real inputs for it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib
import importlib.metadata
import itertools
import multiprocessing
import os
import pathlib
import platform
import re
import sys

import torch
import traces
from fxopt import bridge, tool

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ("issue178935", "llama", "gpt2", "resnet50", "pair", "exported", "titan", "built")
GRAPHS: dict[str, traces.Graph] = {
    name: graph
    for family in FAMILIES
    for name, graph in importlib.import_module(f"traces.{family}").GRAPHS.items()
}
_HEADING = "## Made by scripts/make_testdata.py"
# Not compressed, because tests use these file names.
_PLAIN = ("issue178935_vanilla", "issue178935_selective", "llama1b")


def trace(name: str) -> traces.Traced:
    """Returns the graph `name` in memory, and its keyword arguments of bridge.save.

    Use one process per graph: sequence numbers count from its start, and tags leak from one trace
    into the next. Call traces.close() after the last use of the graph, and before running another.
    """
    graph_module, told = GRAPHS[name].trace()
    traces.number_identities(graph_module)
    return graph_module, told


def inputs(name: str) -> list[object]:
    """Returns real CPU arguments for the graph `name`, the same at each call. Raises ValueError for
    a graph that does not run on a CPU.

    May join a fake process group. The graph's random numbers depend on torch.manual_seed.
    """
    made = GRAPHS[name].inputs
    if made is None:
        names = ", ".join(known for known, graph in GRAPHS.items() if graph.inputs)
        raise ValueError(f"{name} does not fit a CPU; these graphs do: {names}")
    result = made()
    traces.close()
    return result


def substitutions() -> str:
    """Returns the differences between graphs and their small copies, as a Markdown table."""
    lines = ["| small copy | in the original | in the copy | reason |", "|---|---|---|---|"]
    for name, graph in GRAPHS.items():
        lines += [f"| `{name}` | {s.full} | {s.twin} | {s.reason} |" for s in graph.substitutions]
    return "\n".join(lines)


def write_readme(folder: pathlib.Path, made: dict[str, str]) -> None:
    """Replaces this script's part of README.md, up to the next heading, and keeps the rest.

    made: the figures of the files just made. Those of other files stay.
    """
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else "# Test data\n\n"
    before, _, rest = text.partition(_HEADING)
    part, heading, after = rest.partition("\n## ")
    figures = {file: line for file, line in re.findall(r"^- `([^`]+)`: .*\n  (.*); `", part, re.MULTILINE)} | made
    lines = []
    for name, graph in GRAPHS.items():
        if (file := file_name(name)) in figures:
            lines += [f"- `{file}`: {graph.about}.", f"  {figures[file]}; `scripts/make_testdata.py {name}`"]
    packages = [f"{name} {importlib.metadata.version(name)}" for name in ("torchvision", "transformers", "torchtitan")]
    versions = ", ".join([f"torch {torch.__version__}", *packages, f"Python {platform.python_version()}"])
    twins = "A graph with `_twin` in its name is a small copy that runs on a CPU. The copy differs from the original graph in:"
    by_hand = "Graphs whose names begin with `built_` come from a script, not from a model."
    top = [_HEADING, "", f"Traced without a GPU, with {versions}. {by_hand} Do not edit this part by hand.", ""]
    part = "\n".join([*top, *lines, "", twins, "", substitutions()]) + "\n"
    readme.write_text(before + part + heading + after, encoding="utf-8")


def make(name: str, path: pathlib.Path, fxopt: str | None, place: traces.Place) -> int:
    """Traces one graph and writes it, with file names relative to the repository. Returns its
    number of nodes."""
    os.chdir(ROOT)
    traces.place.rank, traces.place.mesh = place.rank, place.mesh
    graph_module, told = trace(name)
    asked = "" if place.mesh is None else "--mesh {}x{} ".format(*place.mesh)
    asked += "" if place.rank is None else f"--rank {place.rank} "
    told = {"module_name": name, "recipe": f"scripts/make_testdata.py {asked}{name}"} | told
    written = bridge.save(graph_module, path, fxopt=fxopt, short_paths=True, **told)
    traces.close()
    return written.nodes


def file_name(name: str, form: str | None = None) -> str:
    return f"{name}.{form or ('pb' if name in _PLAIN else 'pb.zst')}"


def parse_mesh(text: str) -> tuple[int, int]:
    if not (found := re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers such as 4x2")
    return int(found[1]), int(found[2])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Makes the graphs of testdata/ that come from PyTorch.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the graphs, see --list (default: all)")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FOLDER", help="default: testdata")
    parser.add_argument("--form", choices=["pb.zst", "pb", "fxg", "json"])
    parser.add_argument("--rank", action="append", type=int, default=[], metavar="R", help="trace sharded graphs for this rank; repeatable")
    parser.add_argument("--mesh", type=parse_mesh, metavar="AxB", help="the mesh for sharded graphs")
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    parser.add_argument("--list", action="store_true", help="print names and descriptions")
    parser.add_argument("--substitutions", action="store_true", help="print how the small copies differ")
    options = parser.parse_args(arguments)
    if options.list or options.substitutions:
        print(substitutions() if options.substitutions else "\n".join(f"{n}: {g.about}" for n, g in GRAPHS.items()))
        return 0
    if unknown := [name for name in options.names if name not in GRAPHS]:
        parser.error(f"unknown names: {', '.join(unknown)}; names are {', '.join(GRAPHS)}")
    if (options.rank or options.mesh) and (not options.names or options.output is None or not options.rank):
        parser.error("--rank and --mesh need ranks, a folder and names: --rank R -o FOLDER NAME")
    for name in options.names:
        if (options.rank and not GRAPHS[name].has_ranks) or (options.mesh and not GRAPHS[name].has_mesh):
            parser.error(f"{name} has only one rank, or a fixed mesh; --list describes it")

    folder = (options.output or ROOT / "testdata").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    program = tool.find_fxopt(options.fxopt)
    figures: dict[str, str] = {}
    failed = False
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for name, rank in itertools.product(options.names or GRAPHS, options.rank or [None]):
            path = folder / (file_name(name, options.form) if rank is None else f"{name}_rank{rank}.{options.form or 'pb'}")
            place = traces.Place(rank, options.mesh)
            try:
                nodes = pool.submit(make, name, path, program and str(pathlib.Path(program).resolve()), place).result()
            except (bridge.ExportError, ImportError, OSError, RuntimeError) as error:
                print(f"make_testdata: {name}: {error}", file=sys.stderr)
                failed = True
                continue
            data = path.read_bytes()
            figures[path.name] = f"{nodes} nodes, {len(data)} bytes, sha256 `{hashlib.sha256(data).hexdigest()}`"
            print(f"{path}: {figures[path.name]}", flush=True)
    if options.form is None and not options.rank:
        write_readme(folder, figures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
