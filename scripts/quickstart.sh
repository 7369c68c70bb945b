#!/usr/bin/env bash
# Installs missing packages, builds fxopt, and optimizes a real Llama training step with full
# recompute. The report shows the peak memory before and after. Then a small GPT-2 is executed
# before and after passes: equal bits, less memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
echo "quickstart: compiling fxopt, which takes about $((12 / ($(nproc) < 12 ? $(nproc) : 12) + 1)) minutes on $(nproc) processors"
start=$SECONDS
cmake --preset release
cmake --build --preset release --target fxopt
echo "quickstart: compiled in $((SECONDS - start)) s"

graph=testdata/llama1b.pb
if [[ ! -e $graph ]]; then
  echo "quickstart: built build/release/fxopt; $graph is missing from this checkout, so nothing can be optimized" >&2
  exit 1
fi
build/release/fxopt opt "$graph" -o build/llama1b_optimized.pb \
  --passes 'canonicalize,cse,sac{policy=full},remat,dce' --report --timing
echo "quickstart: wrote build/llama1b_optimized.pb"

twin=testdata/gpt2_flb_twin.pb.zst
build/release/fxopt opt "$twin" -o build/gpt2_optimized.pb --passes 'canonicalize,cse,sac{policy=full},remat,dce'
build/release/fxopt run "$twin" --fill random --memory blocks --output build/gpt2_outputs.safetensors
build/release/fxopt run build/gpt2_optimized.pb --fill random --memory blocks --expect build/gpt2_outputs.safetensors --tolerance bitwise
