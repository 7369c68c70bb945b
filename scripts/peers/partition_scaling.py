#!/usr/bin/env python3
"""Measures how long the minimal cut takes on joint graphs of Llama-3 70B, by number of layers.

    scripts/peers/partition_scaling.py [--fxopt PROGRAM] [--layers N]... [--repeat N]
                                       [--keep FOLDER]

Each graph is traced like llama8b_joint of testdata (FSDP over 16 and tensor parallelism over 8 fake
ranks, batch 2, sequence 8192), in a process of its own. --keep stores them in FOLDER, and reuses
those in it. Prints for fxopt's cut and for PyTorch's (compat=torch) the median seconds of the pass
alone and of the program with the proof, and the exponent of the pass's growth from the fewest
layers to the most. Exits with 1 if the pass takes half a second or more, or the exponent is above
1.2. Needs torch and torchtitan; no GPU.
"""

from __future__ import annotations

import math
import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import time

from command import command_line
from fxopt_program import Fxopt

CUTS = ("partition{mode=min-cut}", "partition{mode=min-cut,compat=torch}")
LONGEST, STEEPEST = 0.5, 1.2


def trace(layers: int, target: str, program: str | None) -> None:
    import traces
    from fxopt import bridge
    from traces import titan

    step = titan.Step("llama3", "70B", "flex", "cuda", batch=2, length=8192, layers=layers, fsdp=16, tensor=8)
    graph_module, told = titan.trace_joint(step)
    bridge.save(graph_module, target, fxopt=program, **told)
    traces.close()


def timed(fxopt: Fxopt, source: pathlib.Path, passes: str, repeat: int) -> tuple[float, float, dict[str, object]]:
    """Seconds of the pass and of the program, and the pass's report."""
    alone, whole = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeat):
            start = time.perf_counter()
            done = fxopt.opt(source, pathlib.Path(folder) / "pair.pb", passes, "--strict", "--timing")["passes"][0]
            whole.append(time.perf_counter() - start)
            alone.append(done["seconds"])
    return statistics.median(alone), statistics.median(whole), done


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--layers", type=int, action="append", metavar="N", help="repeatable (default: 10, 20, 40, 80)")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each (default: 5)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="the folder to read and keep graphs in")
    options = parser.parse_args()
    fxopt = Fxopt(options.fxopt)
    is_wrong = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print("| layers | nodes | passes | saved | s, the pass | s, the program |\n|--:|--:|---|--:|--:|--:|")
        times: dict[str, list[tuple[int, float]]] = {passes: [] for passes in CUTS}
        for layers in sorted(options.layers or [10, 20, 40, 80]):
            source = folder / f"llama70b_{layers}_joint.pb"
            if not source.exists():
                process = multiprocessing.get_context("spawn").Process(
                    target=trace, args=(layers, str(source), options.fxopt)
                )
                process.start()
                process.join()
            for passes in CUTS:
                alone, whole, done = timed(fxopt, source, passes, options.repeat)
                times[passes].append((done["nodes_before"], alone))
                cells = [layers, done["nodes_before"], passes, done["counters"]["saved"], f"{alone:.4f}", f"{whole:.3f}"]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)
                is_wrong = is_wrong or alone >= LONGEST
    for passes, rows in times.items():
        (few, first), *_, (many, last) = rows if len(rows) > 1 else rows * 2
        exponent = math.log(last / first) / math.log(many / few) if many > few else 0.0
        print(f"{passes}: exponent {exponent:.2f}, {last:.3f} s at {many} nodes")
        is_wrong = is_wrong or exponent > STEEPEST
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
