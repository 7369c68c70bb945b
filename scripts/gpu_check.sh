#!/usr/bin/env bash
# Measures on a GPU what fxopt predicts: memory, step times, the rows of a device profile. `--help` says more.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "${PYTHON:-python3}" "$here/gpu_check/main.py" "$@"
