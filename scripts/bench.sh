#!/usr/bin/env bash
# Times load, passes, memory analysis and save on graphs that repeat a layer of a real Llama
# training step, forward and backward, and on graphs with 10000 and 40000 getitems of one node. Also
# times the passes of collectives on layers with 5000 and 40000 collectives. Prints a Markdown table
# for each: median seconds, peak memory, exponent of growth, bytes per node.
#
#   scripts/bench.sh [BUILD_FOLDER] [NODES...]    (default: build/release, 36000 and 1000000 nodes)
#
# FXOPT_BENCH_REPEAT: runs per graph (default: 5). FXOPT_BENCH_GRAPH: the step whose layer is
# repeated.
# FXOPT_BENCH_CLOCK=processor counts processor time, for a machine that is not idle.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${1:-build/release}
shift || true
sizes=("$@")
((${#sizes[@]} > 0)) || sizes=(36000 1000000)
graph=${FXOPT_BENCH_GRAPH:-testdata/llama1b.pb}

if [[ $build == build/release ]]; then
  cmake --preset release >&2
fi
cmake --build "$build" --target fxopt_make_tiled fxopt_make_repeated fxopt_bench >&2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
graphs=()
for size in "${sizes[@]}"; do
  "$build/tests/fxopt_make_tiled" "$graph" "$folder/$size.pb" "$size"
  graphs+=("$folder/$size.pb")
done

wide=()
for outputs in 10000 40000; do
  "$build/tests/fxopt_make_repeated" "$folder/wide_$outputs.pb" outputs "$outputs"
  wide+=("$folder/wide_$outputs.pb")
done

layers=()
for count in 1000 8334; do
  "$build/tests/fxopt_make_repeated" "$folder/layers_$count.pb" collectives "$count"
  layers+=("$folder/layers_$count.pb")
done

one_core=()
if command -v taskset >/dev/null; then
  one_core=(taskset --cpu-list "$(taskset --cpu-list --pid $$ | sed 's/.*: *//; s/[,-].*//')")
fi
clock=()
if [[ ${FXOPT_BENCH_CLOCK-} == processor ]]; then
  clock=(--processor-time)
fi
measure() {
  "${one_core[@]}" "$build/tests/fxopt_bench" "${clock[@]}" --repeat "${FXOPT_BENCH_REPEAT:-5}" \
    --out "$folder/out.pb" "$@"
}
measure "${graphs[@]}"
echo
measure "${wide[@]}"
echo
measure --passes 'fuse-gathers{gate=none},alias-round-trips,dedup-unshards,bucket{groups=all,reduce-scatter=200MiB},compute-cap' \
  "${layers[@]}"
