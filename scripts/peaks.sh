#!/usr/bin/env bash
# Prints a Markdown table of the peaks of two Llama training steps by each memory model: without
# recompute, with per-op and with full recompute. If the peaks without and with expandable segments
# differ, both are given in this order.
#
#   scripts/peaks.sh [DEVICE]    a profile as in `fxopt mem --device` (default: h100)
#
# FXOPT: the program (default: build/release/fxopt).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

device=${1:-h100}
fxopt=${FXOPT:-build/release/fxopt}
if [[ ! -x $fxopt ]]; then
  echo "peaks.sh: $fxopt does not exist; build it with \`cmake --preset release && cmake --build --preset release\`" >&2
  exit 1
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Without sac and remat nothing is recomputed, even if a file has tags.
for model in llama1b.pb llama8b_flb.pb.zst; do
  for recompute in none per-op full; do
    passes="canonicalize,cse,sac{policy=$recompute},remat,dce"
    [[ $recompute != none ]] || passes='canonicalize,cse,dce'
    "$fxopt" opt "testdata/$model" -o "$folder/${model%%.*} $recompute.pb" --passes "$passes"
  done
done

"$fxopt" mem "$folder"/*.pb --device "$device" --json >"$folder/report.json"
python3 - "$folder/report.json" <<'PYTHON'
from __future__ import annotations

import json
import sys
from pathlib import Path

ORDER = ["none", "per-op", "full"]
PEAKS = ["ideal", "requested", "allocated", "active", "reserved", "arena"]


def mebibytes(sizes: list[int]) -> str:
    return " / ".join(dict.fromkeys(f"{size / 2**20:.0f}" for size in sizes))


def peak(device: dict, name: str) -> str:
    if name == "arena":
        return mebibytes([device["arena"]["bytes"]])
    rows = [device] if name in device else device["allocator"]
    return mebibytes([row[name]["peak_bytes"] for row in rows])


def row(file: dict) -> tuple[str, int, list[str]]:
    graph, recompute = Path(file["file"]).stem.split()
    device = file["graphs"][0]["devices"][0]
    return graph, ORDER.index(recompute), [graph, recompute, *(peak(device, name) for name in PEAKS)]


files = json.loads(Path(sys.argv[1]).read_text())["result"]["files"]
head = ["peaks in MiB", "recompute", *PEAKS]
print("| " + " | ".join(head) + " |")
print("|---|---|" + "---:|" * len(PEAKS))
for _, _, cells in sorted(row(file) for file in files):
    print("| " + " | ".join(cells) + " |")
PYTHON
