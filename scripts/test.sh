#!/usr/bin/env bash
# Installs missing packages, builds everything and runs every test. The last line is `N passed, N
# failed, N skipped`. The exit status is 0 only if at least one test passed and none failed.
#
#   scripts/test.sh [--no-setup] [PRESET [CMAKE-OPTION...]]
#
# PRESET: a preset of CMakePresets.json (default: release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ "${1-}" == --no-setup ]]; then
  shift
else
  scripts/setup.sh
fi
preset=${1:-release}

if ! cmake --preset "$preset" "${@:2}" || ! cmake --build --preset "$preset"; then
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

results=$PWD/build/$preset/test_results.xml
rm -f "$results"
status=0
ctest --preset "$preset" --parallel "$(nproc)" --output-junit "$results" || status=$?

# Prints an attribute of <testsuite>: the number of tests, or of tests that failed or did not run.
count() {
  [[ -e $results ]] || { echo 0; return; }
  sed -n '/<testsuite/,/>/s/.*[[:space:]]'"$1"'="\([0-9]*\)".*/\1/p' "$results" | head -n 1 | grep . || echo 0
}
failed=$(count failures)
skipped=$(($(count skipped) + $(count disabled)))
passed=$(($(count tests) - failed - skipped))
if ((status != 0 && failed == 0)); then
  failed=1 # ctest itself failed, or a test could not be started
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
