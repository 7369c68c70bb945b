#!/usr/bin/env bash
# Runs the libFuzzer programs of tests/fuzz under AddressSanitizer and UndefinedBehaviorSanitizer:
# every reader, and passes. The seeds are the graphs of tests/cases and testdata. New inputs are
# stored in build/fuzz/corpus, crashes in build/fuzz/crashes. Fails on the first crash. Needs clang.
#
#   scripts/fuzz.sh [SECONDS] [PROGRAM...]    (default: 60 seconds for each of pb, text, json,
#                                             pipeline, safetensors)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
shift || true
programs=("$@")
((${#programs[@]} > 0)) || programs=(pb text json pipeline safetensors)

build=build/fuzz
cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug \
  "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" "-DFXOPT_SANITIZE=address,undefined,fuzzer-no-link" -DFXOPT_FUZZ=ON
cmake --build "$build" --target "${programs[@]/#/fuzz_}"
cmake --preset release
cmake --build --preset release --target fxopt # converts the seeds

# Writes the seeds in a program's form. A case contributes the graph before its separator. Graphs
# that are malformed on purpose are left out.
seed() {
  local form=$1 folder=$2 graph number=0
  while read -r graph; do
    number=$((number + 1))
    case "$graph" in
      *.fxg) sed '/^=====$/,$d' "$graph" ;;
      *) cat "$graph" ;;
    esac | build/release/fxopt convert - --format "$form" -o "$folder/seed_$number.$form" 2>/dev/null || true
  done < <(find tests/cases testdata \( -name '*.fxg' -o -name '*.pb' \) -size -64k | sort)
  if (($(find "$folder" -name 'seed_*' | wc -l) * 2 < number)); then
    echo "fuzz: less than half of $number graphs could be read" >&2
    return 1
  fi
}

# Prints a safetensors file with a header below 256 bytes and zeros as data.
print_safetensors() {
  local header=$1 data_bytes=$2
  printf "\\x$(printf %02x "${#header}")\\0\\0\\0\\0\\0\\0\\0%s" "$header"
  head -c "$data_bytes" /dev/zero
}

seed_safetensors() {
  local folder=$1 metadata='"__metadata__":{"format":"pt"}' empty='"c":{"dtype":"I64","shape":[0],"data_offsets":[4,4]}'
  local scalar='"a":{"dtype":"BF16","shape":[],"data_offsets":[2,4]}'
  local pairs='"b":{"dtype":"F4","shape":[1,4],"data_offsets":[0,2]}'
  print_safetensors '{}' 0 >"$folder/seed_1.safetensors"
  print_safetensors '{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}' 24 >"$folder/seed_2.safetensors"
  print_safetensors "{$metadata,$scalar,$pairs,$empty}" 4 >"$folder/seed_3.safetensors"
}

for program in "${programs[@]}"; do
  corpus=$build/corpus/$program
  mkdir -p "$corpus" "$build/crashes"
  form=$program
  case "$program" in text | pipeline) form=fxg ;; esac
  case "$program" in
    safetensors) seed_safetensors "$corpus" ;;
    *) seed "$form" "$corpus" ;;
  esac
  echo "fuzz: $program for $seconds seconds, $(find "$corpus" -type f | wc -l) seeds"
  "$build/tests/fuzz_$program" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=4096 \
    -print_final_stats=1 -artifact_prefix="$build/crashes/$program-" "$corpus"
done
echo "fuzz: nothing found"
