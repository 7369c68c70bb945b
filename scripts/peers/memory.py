#!/usr/bin/env python3
"""Checks that `fxopt mem` counts the bytes that PyTorch would request, on every graph of testdata.

    scripts/peers/memory.py [--fxopt PROGRAM] [--only NAME]... [--no-peers] [--plant]

The reference is a replay: the graph is loaded and run over fake tensors on its devices, and untyped
storages are counted node by node (peak_counter.py). The requested bytes without workspaces and the
node of the peak must be equal on each device; on a CPU, which has no allocator model, the ideal
peak. Symbols are bound to given values on both sides. Two estimators of PyTorch are printed beside
it, as figures, not checks.

A graph of EXCEPTIONS must differ by exactly the bytes given there. --plant makes one storage of
each graph larger by one element in the file that fxopt reads: then every graph must fail. Exits
with 1 if a check does not hold, with 2 if a planted element is not seen. Needs torch, for some
graphs torchtitan; no GPU. One process for each graph.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator

from command import ROOT, command_line, testdata
import estimators
import torch
from bound_values import BoundGraph, symbols
from fxopt import bridge, tool
from fxopt.form import Json
from fxopt_program import Fxopt, Requested
from peak_counter import Replay, replay
from torch.fx import GraphModule

MAX_SHOWN = 6

# Graphs whose sizes depend on data: the value of each symbol without a hint. It is the number of
# rows that a rank's tokens take, spread evenly over the ranks of its experts.
UNBACKED = {"deepseek16b_twin": 384, "deepseek": 6144, "d_deepseek": 6144}

# Graphs on which fxopt and the replay may differ: the bytes of fxopt above the replay, and the
# reason.
EXCEPTIONS: dict[str, tuple[int, str]] = {
    "g_debug_dp4_tp2_overlap": (
        -2097152,
        "run eagerly, control_deps holds values that it is only ordered after until it runs (%mm_30 at the peak); in Inductor, which"
        " such graphs are made for, these are weak dependencies that extend no lifetime (_inductor/scheduler.py), and so in fxopt",
    ),
}

# Modules that register operators of the graphs.
_OPERATOR_MODULES = ("torch._inductor.fx_passes.bucketing", "torchtitan.ops.scatter_add")


def name_of(path: pathlib.Path) -> str:
    return path.name.split(".")[0]


def find_graphs(folder: pathlib.Path, only: list[str]) -> list[pathlib.Path]:
    """The graphs of testdata, or the named ones. Raises ValueError for a name without a graph."""
    paths = testdata(folder)
    if unknown := set(only) - {name_of(path) for path in paths}:
        raise ValueError(f"no graph in {folder} is called {', '.join(sorted(unknown))}")
    return [path for path in paths if not only or name_of(path) in only]


# ---- one graph


def forget_bare_objects(value: object) -> None:
    """Turns values recorded by type alone into none: dumps hold meshes in this form. They take no
    memory."""
    if isinstance(value, dict):
        if "opaque" in value and not value["opaque"].keys() & {"mesh", "text"}:
            del value["opaque"]
            value["none"] = True
        for item in value.values():
            forget_bare_objects(item)
    elif isinstance(value, list):
        for item in value:
            forget_bare_objects(item)


def load(module: Json, folder: pathlib.Path) -> GraphModule:
    for name in _OPERATOR_MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for graph in module["graphs"]:
        for node in graph["nodes"]:
            forget_bare_objects(node.get("value"))
    path = folder / "graph.json"
    path.write_text(json.dumps({"module": module}), encoding="utf-8")
    return bridge.load(path)


def donated(module: Json) -> set[str]:
    """The placeholders whose values the caller donates."""
    return {node["name"] for node in module["graphs"][0]["nodes"] if node.get("input", {}).get("donated")}


def stated_sizes(name: str, graph_module: GraphModule) -> dict[str, int]:
    """A value for every symbol: its hint, otherwise the one in UNBACKED."""
    found = symbols(graph_module)
    unbacked = next((size for prefix, size in UNBACKED.items() if name.startswith(prefix)), None)
    if unbacked is None and None in found.values():
        raise ValueError(f"{name} has sizes that depend on data, and UNBACKED has no value for them")
    return {symbol: unbacked if hint is None else hint for symbol, hint in found.items()}


def shown_sizes(name: str, sizes: dict[str, int]) -> str:
    values: dict[int, list[str]] = {}
    for symbol, size in sizes.items():
        values.setdefault(size, []).append(symbol)
    texts = [
        f"{names[0]} = {size}" if len(names) == 1 else f"value {size} for each of {len(names)} symbols"
        for size, names in values.items()
    ]
    return ", ".join(texts) or "-"


def plant(path: pathlib.Path, name: str, device: str, result: Replay, folder: pathlib.Path) -> pathlib.Path:
    """A copy of the file in which one storage that is live at the peak is larger by one element."""
    victim = next(storage.node for storage in reversed(result.live(device)))
    module = bridge.read_module(path)
    (value,) = (node["value"] for node in module["graphs"][0]["nodes"] if node["name"] == victim)
    while "tensor" not in value:
        (kind,) = value
        value = next(item for item in value[kind]["items"] if item.keys() & {"tensor", "tuple", "list"})
    tensor = value["tensor"]
    records = {int(record.get("id", position)): record for position, record in enumerate(module["storages"])}
    size = records[int(tensor["storage"])]["bytes"]
    element = getattr(torch, tensor["dtype"].removeprefix("DTYPE_").lower()).itemsize
    if "expr" in size:
        size["expr"] = f"{size['expr']} + {element}"
    else:
        size["value"] = int(size.get("value", 0)) + element
    planted = folder / f"{name}.json"
    tool.write_module(module, planted, None)
    return planted


def difference(name: str, replayed: Replay, device: str, ours: Requested | None) -> list[str]:
    """The failed checks on one device; empty if all hold."""
    peak = replayed.peaks.get(device)
    if peak is None or ours is None:
        missing = "the replay" if peak is None else "fxopt"
        return [f"{name}, {device}: {missing} knows nothing of this device"]
    expected, reason = EXCEPTIONS.get(name, (0, ""))
    if all(size - peak.bytes == expected and node == peak.node for size, node in ours.peaks):
        return []
    text = ", ".join(f"{size} at %{node}" for size, node in ours.peaks)
    lines = [f"{name}, {device}: replay {peak.bytes} at %{peak.node}, fxopt {text}"]
    if reason:
        lines.append(f"  an exception is committed for {expected} bytes: {reason}")
    if ours.unknown:
        lines.append(f"  fxopt knows no size for {len(ours.unknown)} storages: %{', %'.join(ours.unknown[:MAX_SHOWN])}")
    counted, predicted = Counter((s.node, s.bytes) for s in replayed.live(device)), Counter(ours.live)
    for title, only in (("the replay", counted - predicted), ("fxopt", predicted - counted)):
        texts = [f"%{node} ({size})" for node, size in list(only.elements())[:MAX_SHOWN]]
        lines.append(f"  live at the peak only in {title}: {', '.join(texts) or 'none'}")
    return lines


def first_words(error: Exception) -> str:
    """The first words of an error's message, for a table."""
    words = " ".join(str(error).split()).replace("|", "/")
    return f"{type(error).__name__}: {words}"[:60]


def peers(graph_module: GraphModule, sizes: dict[str, int]) -> dict[str, object]:
    """The estimates of PyTorch by device, or the first words of the error that stopped one."""
    result: dict[str, object] = {}
    try:
        result["inductor"] = {"cuda:0": estimators.inductor(graph_module)}
    except Exception as error:
        result["inductor"] = first_words(error)
    try:
        result["mem_tracker"] = estimators.mem_tracker(BoundGraph(graph_module, sizes))
    except Exception as error:
        result["mem_tracker"] = first_words(error)
    return result


def judge(path: pathlib.Path, fxopt: Fxopt, options: argparse.Namespace) -> Json:
    """Rows of the table and failed checks for one graph."""
    name = name_of(path)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        module = bridge.read_module(path, fxopt.program)
        graph_module = load(module, folder)
        sizes = stated_sizes(name, graph_module)
        replayed = replay(BoundGraph(graph_module, sizes), donated(module))
        devices = [device for device, peak in sorted(replayed.peaks.items()) if peak.bytes > 0]
        source = plant(path, name, devices[0], replayed, folder) if options.plant else path
        ours = fxopt.requested(source, sizes)
    estimates = {} if options.no_peers else peers(graph_module, sizes)
    rows, failed = [], []
    for device in sorted({*devices, *ours}):
        failed += difference(name, replayed, device, ours.get(device))
        rows.append(row(name, device, shown_sizes(name, sizes), replayed, ours.get(device), estimates))
    return {"rows": rows, "failed": failed}


def row(name: str, device: str, sizes: str, replayed: Replay, ours: Requested | None, estimates: dict) -> list[str]:
    peak = replayed.peaks.get(device)
    counted = peak.bytes if peak is not None else 0
    figures = [against(ours.peaks[0][0] if ours is not None else None, counted)]
    for key in ("mem_tracker", "inductor"):
        found = estimates.get(key, {})
        figures.append(found if isinstance(found, str) else against(found.get(device), counted))
    return [name, device, sizes, str(counted), f"`{peak.node}`" if peak is not None else "-", *figures]


def against(size: int | None, counted: int) -> str:
    """A figure and its ratio to the replay's."""
    return "-" if size is None else f"{size} ({size / counted:.4f})" if counted else str(size)


# ---- all graphs


def judge_apart(path: pathlib.Path, flags: list[str]) -> Json:
    """judge() in a process of its own."""
    command = [sys.executable, __file__, "--task", str(path), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        return {"rows": [], "failed": [f"{name_of(path)}: {last}"]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def table(paths: list[pathlib.Path], flags: list[str], failed: dict[str, list[str]]) -> Iterator[str]:
    """The lines of the table, each as soon as it is known. Failed checks are added to `failed`, by
    graph."""
    yield "| graph | device | sizes | replay | at | fxopt | MemTracker | Inductor |"
    yield "|---|---|---|---|---|---|---|---|"
    for number, path in enumerate(paths, 1):
        print(f"{number}/{len(paths)} {name_of(path)}", file=sys.stderr, flush=True)
        result = judge_apart(path, flags)
        failed[name_of(path)] = result["failed"]
        for cells in result["rows"]:
            yield f"| {' | '.join(cells)} |"


def conclude(failed: dict[str, list[str]], is_planted: bool) -> int:
    for lines in failed.values():
        print(*lines, sep="\n", end="\n" if lines else "")
    for name in failed:
        if name in EXCEPTIONS:
            print(f"exception {name}, {EXCEPTIONS[name][0]:+} bytes: {EXCEPTIONS[name][1]}")
    differ = [name for name, lines in failed.items() if lines]
    if is_planted:
        unseen = sorted(failed.keys() - set(differ))
        print(f"a planted element is not seen in {', '.join(unseen)}" if unseen else "every planted element is seen")
        return 2 if unseen else 1
    print(f"{len(differ)} of {len(failed)} graphs differ" if differ else f"all {len(failed)} graphs hold")
    return 1 if differ else 0


def main(arguments: list[str] | None = None) -> int:
    parser = command_line(__doc__)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "testdata", help="default: testdata")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a graph; repeatable (default: all)")
    parser.add_argument("--no-peers", action="store_true", help="omit PyTorch's estimators")
    parser.add_argument("--plant", action="store_true", help="plant an element: every graph must then fail")
    parser.add_argument("--task", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        fxopt = Fxopt(options.fxopt)
        # for the loader and the processes below
        os.environ["FXOPT"] = str(pathlib.Path(fxopt.program).resolve())
        if options.task:
            print(json.dumps(judge(options.task, fxopt, options)))
            return 0
        paths = find_graphs(options.folder, options.only)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"memory: {error}", file=sys.stderr)
        return 1
    flags = [flag for flag, is_set in (("--no-peers", options.no_peers), ("--plant", options.plant)) if is_set]
    failed: dict[str, list[str]] = {}
    print(f"torch {torch.__version__}; in parentheses the ratio to the replay\n")
    for line in table(paths, flags, failed):
        print(line, flush=True)
    print()
    return conclude(failed, options.plant)


if __name__ == "__main__":
    sys.exit(main())
