#!/usr/bin/env bash
# Formats all C++ sources in place, or says which lines are not formatted and fails; also where CTest would cut a test's
# name in two.
#
#   scripts/format.sh [--check]
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
# The tree of forbidden includes is what it must be to be forbidden.
mapfile -t files < <(find core ir passes runtime cli tests -not -path 'tests/layers/bad/*' \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) | sort)
echo "${#files[@]} files"
((${#files[@]} > 0))
clang-format-14 "${options[@]}" "${files[@]}"
if [[ ${1-} == --check ]] && grep -nE '^TEST_CASE[A-Z_]*\([^"]*"[^"]*;' "${files[@]}"; then
  echo "the name of a test has a ';', at which CTest cuts lists" >&2
  exit 1
fi
