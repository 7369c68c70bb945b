#!/usr/bin/env python3
"""Measures the cost of bridge.apply on a real step, and the share of it that is not the tool's.

    scripts/peers/apply_times.py [--fxopt PROGRAM] [--passes PIPELINE] [--repeat N] [NAME...]

Traces each graph of make_testdata.py (default: llama8b_flb) once and applies the pipeline to a copy
each time. Prints medians in seconds of processor time: the whole call, the fxopt process, the work
time that fxopt reports, and the parts in Python (export, JSON, patch, and the recompile of torch.fx
within it). Below them are the passes of torchtitan and PyTorch that do the work of fxopt's default
pipeline on the same graph. The times are figures, not checks. Needs torch and torchtitan; no GPU.
"""

from __future__ import annotations

import copy
import gc
import os
import resource
import statistics
import sys
from collections.abc import Callable

from command import command_line
import make_testdata
import remat_sides
import traces
from fxopt import bridge, form, patcher, tool
from torch._functorch.compile_utils import fx_graph_cse
from torch.fx import GraphModule
from torchtitan.experiments.graph_trainer.remove_noop_passes import canonicalize_graph_pass

PARTS = {
    "export": (patcher.Exporter, "module"),
    "write": (form, "write_json"),
    "process": (tool, "call"),
    "patch": (patcher._Patch, "run"),
    "recompile": (GraphModule, "recompile"),
}


def processor_seconds() -> float:
    """The processor seconds of this process and of the processes it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Clock:
    """Adds up the processor time spent in functions, by wrapping them."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.worked = 0.0
        for part, (owner, name) in PARTS.items():
            setattr(owner, name, self._timed(part, getattr(owner, name)))

    def _timed(self, part: str, function: Callable) -> Callable:
        def run(*args: object, **kwargs: object) -> object:
            start = processor_seconds()
            result = function(*args, **kwargs)
            self.seconds[part] += processor_seconds() - start
            if part == "process":
                self.worked += sum(result["result"]["files"][0].get("seconds", {}).values())
            return result

        return run

    def reset(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.worked = 0.0


def measure(clock: Clock, graph_module: GraphModule, passes: str | None, repeat: int) -> dict[str, float]:
    """Medians of each part, in seconds."""
    rows = []
    for _ in range(repeat):
        work = copy.copy(graph_module)
        work.graph = copy.deepcopy(graph_module.graph)
        clock.reset()
        gc.collect()
        start = processor_seconds()
        bridge.apply(work, passes, options=["--timing"])
        rows.append({"total": processor_seconds() - start, "fxopt": clock.worked} | clock.seconds)
        nodes = len(work.graph.nodes)
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]} | {"after": nodes}


def framework_passes(graph_module: GraphModule, repeat: int) -> tuple[float, int]:
    """The median of processor seconds that the framework's own passes take, called as in their pass
    lists, and the number of nodes that they leave."""
    times = []
    for _ in range(repeat):
        work = remat_sides.copy_of(graph_module)
        gc.collect()
        start = processor_seconds()
        work = canonicalize_graph_pass(work)
        work.graph = fx_graph_cse(work.graph)  # recompiles
        work = remat_sides.torch_remat(work)
        work.graph.eliminate_dead_code()
        work.recompile()
        times.append(processor_seconds() - start)
        nodes = len(work.graph.nodes)
    return statistics.median(times), nodes


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", default=["llama8b_flb"])
    parser.add_argument("--passes", metavar="PIPELINE", help="default: fxopt's own")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    options = parser.parse_args()
    if options.fxopt:
        os.environ["FXOPT"] = options.fxopt
    print("| graph | nodes | after | total s | fxopt process s | fxopt's work in it s | export | JSON | patch | recompile |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    clock = Clock()
    for name in options.names:
        graph_module, _ = make_testdata.trace(name)
        found = measure(clock, graph_module, options.passes, options.repeat)
        json_seconds = found["total"] - sum(found[part] for part in ("export", "process", "patch"))
        parts = [found["total"], found["process"], found["fxopt"], found["export"], json_seconds, found["patch"]]
        cells = " | ".join(f"{seconds:.2f}" for seconds in [*parts, found["recompile"]])
        print(f"| {name} | {len(graph_module.graph.nodes)} | {int(found['after'])} | {cells} |")
        theirs, left = framework_passes(graph_module, options.repeat)
        print(
            f"| canonicalize_graph_pass, fx_graph_cse, remat, dead code | {len(graph_module.graph.nodes)} | {left} | {theirs:.2f} |"
        )
        share = (found["total"] - found["process"]) / found["total"]
        print(f"{name}: {share:.0%} of the call is not the fxopt process")
        traces.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
