#!/usr/bin/env bash
# Formats all C++ sources in place.
#
#   scripts/format.sh [--check]
#
# --check changes nothing. It lists lines that are not formatted and names of tests that CTest would
# split, and fails if it finds any.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1-}" in
  '') options=(-i) ;;
  --check) options=(--dry-run --Werror) ;;
  *)
    echo "usage: scripts/format.sh [--check]" >&2
    exit 2
    ;;
esac
# tests/layers/bad contains forbidden includes on purpose.
mapfile -t files < <(find core ir passes runtime cli tests -not -path 'tests/layers/bad/*' \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) | sort)
echo "${#files[@]} files"
((${#files[@]} > 0))
clang-format-14 "${options[@]}" "${files[@]}"
if [[ ${1-} == --check ]] && grep -nE '^TEST_CASE[A-Z_]*\([^"]*"[^"]*;' "${files[@]}"; then
  echo "the name of a test contains ';', which CTest reads as a separator" >&2
  exit 1
fi
