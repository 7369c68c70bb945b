#!/usr/bin/env bash
# Runs tests that take too long for every change. FXOPT: the program (default: build/gcc/fxopt).
#
#   scripts/long.sh full-size       a training step of GPT-2 (124 million parameters); takes 13 GB
#   scripts/long.sh threads         the runtime under the thread sanitizer
#   scripts/long.sh gpu             the CUDA plugin on the fake driver: 100 orders of streams and
#                                   threads, 10,000 failures
#   scripts/long.sh [all]           all stages
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fxopt=${FXOPT:-build/gcc/fxopt}

# The traced step needs more than 23 GiB; with full recompute it needs less than 12 GiB.
full_size() {
  local folder
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' RETURN
  "$fxopt" opt testdata/gpt2_flb.pb.zst -o "$folder/gpt2.pb" --passes 'canonicalize,cse,sac{policy=full},remat,dce'
  "$fxopt" run "$folder/gpt2.pb" --fill random --seed 7
}

threads() {
  cmake --preset tsan
  cmake --build --preset tsan --target fxopt_thread_tests
  build/tsan/tests/fxopt_thread_tests
}

gpu() {
  cmake --build "${BUILD:-build/gcc}" --target fxopt_plugin_tests fxopt_tests
  FXOPT_TEST_ORDERS=100 FXOPT_TEST_FAILURES=10000 "${BUILD:-build/gcc}/tests/fxopt_plugin_tests"
  FXOPT_TEST_ORDERS=100 "${BUILD:-build/gcc}/tests/fxopt_tests" 'op cases*,emulation*'
}

case ${1:-all} in
full-size) full_size ;;
threads) threads ;;
gpu) gpu ;;
all)
  full_size
  threads
  gpu
  ;;
*)
  echo "long.sh: unknown stage '$1': use full-size, threads, gpu or all" >&2
  exit 2
  ;;
esac
