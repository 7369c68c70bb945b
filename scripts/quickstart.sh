#!/usr/bin/env bash
# Installs what is missing, builds fxopt, and optimizes a real Llama training step: its recompute decisions are carried
# out, and the report shows the peak memory before and after.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
cmake --preset release
cmake --build --preset release --target fxopt

graph=testdata/llama1b.pb
if [[ ! -e $graph ]]; then
  echo "quickstart: built build/release/fxopt; $graph is not in this checkout, so there is nothing to optimize" >&2
  exit 1
fi
build/release/fxopt opt "$graph" -o build/llama1b_optimized.pb \
  --passes 'canonicalize,cse,sac{policy=full},remat,dce' --report --timing
echo "quickstart: wrote build/llama1b_optimized.pb"
