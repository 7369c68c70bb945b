#!/usr/bin/env bash
# Builds judge.cpp against an installed PyTorch for CUDA and runs it on random traces. Needs no GPU.
#
#   scripts/peers/allocator/run.sh [FIRST] [COUNT] [FILE]    COUNT traces (default: 1000) from FIRST
#
# FILE gets a digest of each; tests/cases/allocator_torch.txt has those of the first 2000.
#
# FXOPT_PYTHON: the Python that has torch, python3 if not set. CXX: the compiler, g++ if not set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

packages=$("${FXOPT_PYTHON:-python3}" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
cuda=$(dirname "$(find "$packages/nvidia" -name cuda_runtime_api.h | head -n 1)")/..
runtime=$(find "$packages/nvidia" -name 'libcudart.so.*' | head -n 1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"${CXX:-g++}" -std=c++20 -O1 -rdynamic -I. -isystem "$packages/torch/include" -isystem "$cuda/include" \
  scripts/peers/allocator/*.cpp tests/core/allocator_model.cpp tests/core/allocator_trace.cpp \
  core/allocator/simulated_device.cpp core/check.cpp \
  -L"$packages/torch/lib" -lc10_cuda -lc10 "$runtime" \
  -Wl,-rpath,"$packages/torch/lib" -Wl,-rpath,"$(dirname "$runtime")" -o "$folder/judge"
"$folder/judge" "$@" 2>/dev/null
