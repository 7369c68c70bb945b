#!/usr/bin/env python3
"""Draws the picture of README: live bytes of llama1b by class, before and after recompute.

    scripts/timeline_svg.py [--fxopt PROGRAM] [--output FILE]

Needs matplotlib. FILE (default: cli/topics/timeline.svg) may be a PNG. The same program and the same version of
matplotlib give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PIPELINE = "canonicalize,cse,sac{policy=full},remat,dce"
CLASSES = (
    (("parameter", "buffer", "input"), "parameters and inputs", "#9aa5b1"),
    (("gradient",), "gradients", "#e0a458"),
    (("saved value",), "saved activations", "#4c78a8"),
    (("temporary",), "temporaries", "#b5d0e8"),
)
GIB = 2**30
SLICES = 160
Row = tuple[int, dict[str, int]]  # microsecond of the trace, bytes by class


def live_bytes(fxopt: str, graph: pathlib.Path, scratch: pathlib.Path) -> tuple[list[float], list[list[float]]]:
    """Places in the schedule from 0 to 100 %, and GiB of each of CLASSES there."""
    trace = scratch / "trace.json"
    subprocess.run([fxopt, "mem", str(graph), "--trace", str(trace)], check=True, stdout=subprocess.DEVNULL)
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    rows = [(each["ts"], each["args"]) for each in events if each["ph"] == "C" and each["name"].endswith("by class")]
    highest: dict[int, Row] = {}  # of each slice of the schedule, so that the picture keeps the peak
    for place, args in rows:
        at = SLICES * place // (rows[-1][0] + 1)
        highest[at] = max(highest.get(at, (place, args)), (place, args), key=lambda row: sum(row[1].values()))
    rows = [highest[at] for at in sorted(highest)]
    places = [100 * at / SLICES for at in sorted(highest)]
    return places, [[sum(row[name] for name in names) / GIB for _, row in rows] for names, _, _ in CLASSES]


def draw(steps: list[tuple[str, list[float], list[list[float]]]], output: pathlib.Path) -> None:
    import matplotlib

    matplotlib.rcParams.update({"svg.hashsalt": "fxopt", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(steps), figsize=(9, 3), sharey=True, layout="constrained")
    for axis, (title, places, layers) in zip(axes, steps):
        axis.stackplot(places, layers, colors=[color for *_, color in CLASSES], labels=[label for _, label, _ in CLASSES], step="post", linewidth=0)
        peak = max(map(sum, zip(*layers)))
        axis.axhline(peak, color="#c0392b", linewidth=0.8, linestyle="--")
        axis.text(2, peak, f"peak {peak:.2f} GiB", color="#c0392b", va="bottom")
        axis.set(title=title, xlabel="place in the schedule, %", xlim=(0, 100))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set(ylabel="live GiB", ylim=(0, 16.5))
    axes[-1].legend(loc="upper right", frameon=False)
    figure.savefig(output, metadata={"Date": None, "Creator": None} if output.suffix == ".svg" else None)
    if output.suffix == ".svg":
        text = output.read_text(encoding="utf-8")
        lines = re.sub(r"(\d\.\d)\d+", r"\1", text).splitlines()  # a tenth of a point is enough
        output.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fxopt", default=os.environ.get("FXOPT", "fxopt"))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "cli/topics/timeline.svg")
    options = parser.parse_args()
    before = ROOT / "testdata/llama1b.pb"
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        after = scratch / "after.pb"
        subprocess.run([options.fxopt, "opt", str(before), "-o", str(after), "--passes", PIPELINE], check=True, stdout=subprocess.DEVNULL)
        steps = [("as traced", *live_bytes(options.fxopt, before, scratch)), ("after " + PIPELINE, *live_bytes(options.fxopt, after, scratch))]
    draw(steps, options.output)


if __name__ == "__main__":
    main()
