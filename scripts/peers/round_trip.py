#!/usr/bin/env python3
"""Checks, in fresh processes, that load(save(graph)) equals every graph of make_testdata.py.

    scripts/peers/round_trip.py [--fxopt PROGRAM] [--plant] [NAME...]

For each graph one process traces it, describes it (graph_description.py, which shares no code with
the exporter) and saves it. A second loads the file, describes and compares the result, and saves it
again: the bytes must be the same. A third runs the twins, which fit a CPU, on real inputs: as
traced, as loaded, and as loaded and put through canonicalize,cse,dce in place. The outputs must be
equal to the bit.

--plant adds a metadata key on a node to the description only, without the exporter's knowledge: the
comparison must then fail, or it would miss a loss. Exits with 1 if a check does not hold. Needs
torch and the libraries of the graphs; no GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from command import command_line, program_of
import graph_description
import make_testdata
import torch
import traces
from fxopt import bridge
from torch.utils import _pytree as pytree

PASSES = "canonicalize,cse,dce"
MAX_SHOWN = 8


def save(name: str, folder: pathlib.Path, plant: bool) -> dict:
    """Runs the first process: traces, describes, saves."""
    graph_module, told = make_testdata.trace(name)
    start = time.perf_counter()
    bridge.save(graph_module, folder / f"{name}.pb", **told)
    seconds = time.perf_counter() - start
    if plant:
        list(graph_module.graph.nodes)[-2].meta["planted"] = True
    description = graph_description.describe(graph_module)
    (folder / "description.json").write_text(json.dumps(description), encoding="utf-8")
    nodes = [node for graph in description["graphs"].values() for node in graph["nodes"]]
    return {"nodes": len(nodes), "edges": sum(len(node["users"]) for node in nodes), "save": seconds}


def load(name: str, folder: pathlib.Path) -> dict:
    """Runs the second process: loads, describes, compares, saves again."""
    path = folder / f"{name}.pb"
    start = time.perf_counter()
    graph_module = bridge.load(path)
    seconds = time.perf_counter() - start
    module = bridge.read_module(path)
    bridge.save(graph_module, folder / "again.pb")
    same_bytes = (folder / "again.pb").read_bytes() == path.read_bytes()
    if module.get("groups"):
        bridge.init_fake_groups(module)
    known = json.loads((folder / "description.json").read_text(encoding="utf-8"))
    found = json.loads(json.dumps(graph_description.describe(graph_module)))
    lines = graph_description.differences(known, found)
    return {"load": seconds, "differences": len(lines), "shown": lines[:MAX_SHOWN], "same_bytes": same_bytes}


def _bits(value: object) -> object:
    if isinstance(value, torch.Tensor):
        plain = value.detach().contiguous()
        return (str(plain.dtype), tuple(plain.shape), ctypes.string_at(plain.data_ptr(), plain.nbytes))
    return repr(value)


def _outputs(graph_module: torch.fx.GraphModule, name: str) -> list[object]:
    """Outputs and inputs after a run, to the bit: a step may write to its inputs."""
    args = make_testdata.inputs(name)
    torch.manual_seed(0)
    outputs = bridge.run(graph_module, args)
    return [_bits(leaf) for leaf in pytree.tree_leaves((outputs, args))]


def execute(name: str, folder: pathlib.Path) -> dict:
    """Runs the third process: executes the graph as traced, as loaded, and after passes."""
    traced, _ = make_testdata.trace(name)
    traces.close()  # modes that AOTAutograd left on would make the inputs fake
    before = _outputs(traced, name)
    loaded = bridge.load(folder / f"{name}.pb")
    after = _outputs(loaded, name)
    count = len(loaded.graph.nodes)
    bridge.apply(loaded, PASSES)
    loaded.graph.lint()
    passed = _outputs(loaded, name)
    return {
        "outputs": len(before),
        "loaded_equal": before == after,
        "passed_equal": before == passed,
        "nodes": [count, len(loaded.graph.nodes)],
    }


def _process(task: str, name: str, folder: pathlib.Path, *flags: str) -> dict:
    command = [sys.executable, __file__, "--task", task, "--folder", str(folder), *flags, name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip()[-2000:]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def _read_seconds(program: str, path: pathlib.Path) -> float:
    start = time.perf_counter()
    subprocess.run([program, "verify", str(path)], capture_output=True)
    return time.perf_counter() - start


def check(name: str, program: str, plant: bool) -> list[str]:
    """Prints the line of one graph. Returns the failed checks."""
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        saved = _process("save", name, folder, *(["--plant"] if plant else []))
        if "error" in saved:
            return [f"{name}: {saved['error']}"]
        loaded = _process("load", name, folder)
        if "error" in loaded:
            return [f"{name}: {loaded['error']}"]
        size = (folder / f"{name}.pb").stat().st_size
        seconds = [saved["save"], loaded["load"], _read_seconds(program, folder / f"{name}.pb")]
        figures = [saved["nodes"], saved["edges"], size, round(size / max(saved["nodes"], 1), 1)]
        run = execute_if_twin(name, folder)
    failed = [f"{name}: {line}" for line in loaded["shown"]]
    if not loaded["same_bytes"]:
        failed.append(f"{name}: the bytes differ when saved again")
    text = f"| {name} | {' | '.join(map(str, figures))} | {' | '.join(f'{s:.2f}' for s in seconds)} "
    print(f"{text}| {loaded['differences']} | {run_text(run)} |", flush=True)
    if run is not None and not (run.get("loaded_equal") and run.get("passed_equal")):
        failed.append(f"{name}: {run.get('error', 'outputs differ')}")
    return failed


def execute_if_twin(name: str, folder: pathlib.Path) -> dict | None:
    return _process("execute", name, folder) if make_testdata.GRAPHS[name].inputs is not None else None


def run_text(run: dict | None) -> str:
    if run is None:
        return "not executed: no inputs for a CPU"
    if "error" in run:
        return "failed"
    equal = "equal" if run["loaded_equal"] and run["passed_equal"] else "DIFFER"
    return f"{run['outputs']} tensors {equal}; {run['nodes'][0]} nodes before passes, {run['nodes'][1]} after"


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="graphs of make_testdata.py (default: all)")
    parser.add_argument("--plant", action="store_true", help="plant a key in the description: every graph must then fail")
    parser.add_argument("--task", choices=["save", "load", "execute"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        (name,) = options.names
        tasks = {"save": lambda: save(name, options.folder, options.plant)}
        tasks |= {"load": lambda: load(name, options.folder), "execute": lambda: execute(name, options.folder)}
        print(json.dumps(tasks[options.task]()))
        traces.close()
        return 0
    program = program_of(options)
    os.environ["FXOPT"] = program  # for the processes below
    print("| graph | nodes | edges | bytes | bytes a node | save s | load s | fxopt reads s | differences | executed |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    failed = [line for name in options.names or make_testdata.GRAPHS for line in check(name, program, options.plant)]
    for line in failed:
        print(line)
    print(f"{len(failed)} checks failed" if failed else "all hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
