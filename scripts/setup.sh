#!/usr/bin/env bash
# Installs the Debian packages that the build needs and this machine lacks. Returns at once if all
# are installed.
#
#   scripts/setup.sh         for users: compiler, CMake, libraries
#   scripts/setup.sh --ci    also for .ci/run: clang, clang-format 14, ccache, python3 with venv and
#                            jsonschema
#   scripts/setup.sh --browser   Chromium and its driver, for the tests of the HTML report
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config protobuf-compiler libprotobuf-dev libcli11-dev libspdlog-dev libfmt-dev
  nlohmann-json3-dev catch2 libboost-dev libboost-context-dev libxxhash-dev libzstd-dev robin-map-dev libjs-dygraphs)
case "${1-}" in
  "") ;;
  --ci) packages+=(clang clang-format-14 ccache python3 python3-venv python3-jsonschema) ;;
  --browser) packages=(chromium chromium-driver) ;;
  *)
    echo "setup: unknown argument '$1': usage: scripts/setup.sh [--ci | --browser]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this machine has no dpkg and apt-get: install the equivalents of these Debian packages: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  if ! dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed'; then
    missing+=("$package")
  fi
done
if ((${#missing[@]} == 0)); then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: installing needs root, and sudo is missing: run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  local command=(env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 "$@")
  if ! "${as_root[@]}" "${command[@]}" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    echo "setup: apt-get $1 failed, see above" >&2
    exit 1
  fi
}
apt update
apt install -y --no-install-recommends "${missing[@]}"
echo "setup: done"
