#!/usr/bin/env bash
# Checks fxopt's predictions on a GPU: memory, step times, the lines of a device profile. See
# --help.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "${PYTHON:-python3}" "$here/gpu_check/main.py" "$@"
