// The lanes of a GPU. Lanes are the workers that share one unit of work, for example one row of a
// tensor (runtime/ops/kernels/device.h). On a GPU, a block computes one unit of work, and each
// thread of the block is one lane.
//
// This file is plain CUDA. nvcc compiles the file for GPUs. g++ compiles the file for the
// emulation, which defines CUDA's keywords.
#pragma once

#include "runtime/ops/kernels/device.h"

namespace fxopt::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

struct WarpLanes {
  static constexpr bool kIsOne = false;
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ static constexpr int count() { return kWarp; }
  // from_lane_above() returns x of the lane whose index is larger by `steps`. from_lane() returns x
  // of lane `from`. All lanes of the warp must call these functions.
  template <class T>
  __device__ static T from_lane_above(T x, int steps) {
    return __shfl_down_sync(kAllLanes, x, static_cast<unsigned>(steps));
  }
  template <class T>
  __device__ static T from_lane(T x, int from) {
    return __shfl_sync(kAllLanes, x, from);
  }
};

// The lanes of a block. The number of lanes is a multiple of kWarp.
struct BlockLanes {
  static constexpr bool kIsOne = false;
  static constexpr int kTileLanes = 256;
  __device__ static int lane() { return static_cast<int>(threadIdx.x); }
  __device__ static int count() { return static_cast<int>(blockDim.x); }
  __device__ static constexpr WarpLanes warp() { return {}; }
  __device__ static int warp_index() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static int num_warps() { return static_cast<int>(blockDim.x) / kWarp; }

  // Every lane must call this function. All lanes of a warp must pass the same `x`, and different
  // warps may pass different values. In every lane, calls visit(w, x_w) for w = 0, 1, and so on, up
  // to the last warp of the block. Here, x_w is the value that the lanes of warp w pass.
  template <class T, class Visit>
  __device__ static void for_each_warp(T x, const Visit& visit) {
    __shared__ T of_warps[kWarp];
    __syncthreads();
    if (WarpLanes::lane() == 0) of_warps[warp_index()] = x;
    __syncthreads();
    for (int w = 0; w < num_warps(); ++w) visit(w, of_warps[w]);
  }

  // Transposes a table of kWarp x kWarp elements. The block must have kWarp / n warps, and each
  // lane has n elements. x[k] in lane l of warp w is this element of the table:
  //   on entry:  row w + k * num_warps(), column l
  //   on return: row l, column w + k * num_warps()
  // All lanes of the block must call this function.
  template <class T, int n>
  __device__ static void transpose(T (&x)[n]) {
    __shared__ T table[kWarp][kWarp + 1];
    __syncthreads();
    for (int k = 0; k < n; ++k) table[warp_index() + k * num_warps()][WarpLanes::lane()] = x[k];
    __syncthreads();
    for (int k = 0; k < n; ++k) x[k] = table[WarpLanes::lane()][warp_index() + k * num_warps()];
  }
};

}  // namespace
}  // namespace fxopt::kernels
