#!/usr/bin/env python3
"""Estimate the time of the stages of gpu_check.sh on an H100, on a machine without one.

    scripts/gpu_check/estimate.py [--fxopt PROGRAM]

The work of the program and Python before each full-size graph runs is measured on this CPU. A step
takes twice its roofline of `fxopt diff --device h100`. SECONDS are assumptions. Needs torch. Exits
with 1 if a stage, or all stages together, would exceed the limit.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "peers")]

from fxopt_program import Fxopt
from results import table
from stage import Context, all_stages
from stages import memory

SECONDS = {
    "start": 10.0,  # per process: import torch, a context, first calls of libraries
    "node": 20e-6,  # from one call in Python to the next
    "billed node": 120e-6,  # the same, with two readings of the allocator's counters
    "inputs": 0.3,  # per graph: random numbers, and memory from the driver
    "snapshot": 0.5,  # per billed run: reading its events
    "model": 8.0,  # llama1b: building the model twice
    "trace": 25.0,  # llama1b: tracing 16 layers; 8 take 9 s on this CPU
    "comparing": 1.5,  # llama1b: copying 2.5 GB of gradients to the card
    "profile": 20.0,
}
PROFILE = "h100,torch-2.11"
# Twice the roofline of forward and backward of 1.24 B parameters on 4096 tokens, and of launches.
LLAMA_STEP = 0.25
STEPS_OF_LLAMA = 6 * 4


def of_memory(fxopt: Fxopt) -> tuple[float, float, float]:
    """Returns the seconds of the host before graphs run, of launching, and of the device."""
    import memory_runs

    context = Context(fxopt.program, False)
    host = launching = device = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for graph in memory.GRAPHS:
            for variant in memory.VARIANTS:
                start = time.perf_counter()
                ready = memory.make_ready(context, fxopt, PROFILE, f"classic {graph} {variant}", pathlib.Path(folder))
                middle = time.perf_counter()
                subject = memory_runs.subject_of(ready.module)
                loaded = time.perf_counter() - middle
                host += 2 * (loaded + (middle - start) / 4)  # four at a time
                nodes = len(subject.bound.nodes)
                runs = 2 * memory.STEPS + 2
                launching += nodes * (2 * memory.STEPS * SECONDS["node"] + 2 * SECONDS["billed node"])
                launching += 2 * SECONDS["inputs"] + 2 * SECONDS["snapshot"]
                path = memory.source_of(fxopt, graph, variant, False, pathlib.Path(folder))
                work = fxopt.run("diff", str(path), str(path), "--device", "h100")["graphs"][0]["before"]["work"]
                device += runs * 2 * work["seconds"]
    return host, launching, device


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fxopt", metavar="PROGRAM", help="the fxopt program (default: $FXOPT, else fxopt on PATH)")
    options = parser.parse_args(arguments)
    host, launching, device = of_memory(Fxopt(options.fxopt))
    llama = SECONDS["model"] + SECONDS["trace"] + 6 * SECONDS["comparing"] + STEPS_OF_LLAMA * LLAMA_STEP
    seconds = {
        "memory": (2 * SECONDS["start"], host, launching, device),
        "llama1b": (SECONDS["start"], llama - STEPS_OF_LLAMA * LLAMA_STEP, 0.0, STEPS_OF_LLAMA * LLAMA_STEP),
        "profile": (SECONDS["start"], 0.0, 0.0, SECONDS["profile"]),
    }
    limits = {stage.name: stage.seconds for stage in all_stages()}
    cells = [[name, *(f"{part:.0f}" for part in parts), f"{sum(parts):.0f}", limits[name]] for name, parts in seconds.items()]
    total = sum(sum(parts) for parts in seconds.values())
    cells.append(["all", "", "", "", "", f"{total:.0f}", sum(limits.values())])
    print("\n".join(table(["stage", "starts, s", "host", "launching", "device", "together", "limit"], cells)))
    return 0 if total <= 420 and all(sum(parts) <= limits[name] for name, parts in seconds.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
