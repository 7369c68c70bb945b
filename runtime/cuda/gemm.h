// Matrix products on a GPU. Each element of the result is computed from one row of the left matrix
// `a` and one column of the right matrix `b`. The computation is one chain of operations, as on a
// CPU:
//   sum = fma(a[k], b[k], sum) for k = 0, 1, ..., starting with sum = 0
//
// A block computes a square of kSide x kSide elements of the result. The block copies kDepth
// columns of `a` and kDepth rows of `b` at a time into shared memory. A block has kGemmLanes
// threads, and each thread computes kOwn x kOwn elements. The thread with index t computes these
// elements of the square, for all i and j from 0 to kOwn - 1:
//   row    t / kAcross + i * kAcross
//   column t % kAcross + j * kAcross
#pragma once

#include "runtime/ops/kernels/tile.h"

namespace fxopt::kernels {
namespace {

constexpr int kSide = 64, kDepth = 16, kOwn = 4, kAcross = kSide / kOwn;
constexpr uint32_t kGemmLanes = kAcross * kAcross;

// The result [B, M, N] is the first view. The operands a [B, M, K] and b [B, K, N] follow. For
// addmm, a third operand c [B, M, N] follows, and the params are beta and alpha.
FX_FN int64_t gemm_units(const FxCall& call, uint32_t) {
  const FxView& result = call.views[0];
  return result.size[0] * num_tiles(result.size[1], kSide) * num_tiles(result.size[2], kSide);
}
constexpr uint32_t most_of_gemm_lanes = kGemmLanes;
FX_FN uint32_t gemm_lanes(const FxCall&, uint32_t) { return kGemmLanes; }

#if defined(FX_HAS_LANES)
// Returns element (i, j) of a matrix, or 0 if (i, j) is outside the matrix.
template <class T>
FX_FN T load_element(const FxView& view, int64_t batch, int64_t i, int64_t j) {
  if (i >= view.size[1] || j >= view.size[2]) return T(0);
  return load_one<T>(view, batch * view.stride[0] + i * view.stride[1] + j * view.stride[2]);
}

template <class T>
FX_FN T gemm_finish(const FxCall& call, int64_t batch, int64_t i, int64_t j, T sum) {
  if (call.num_operands != 3) return sum;
  const T beta = number_as<T>(call.params[0]), alpha = number_as<T>(call.params[1]);
  if (alpha != T(1)) sum = multiply(alpha, sum);
  // If beta is 0, c is ignored, even if c is NaN.
  if (beta == T(0)) return sum;
  const T c = load_element<T>(call.views[3], batch, i, j);
  return add(sum, beta == T(1) ? c : multiply(beta, c));
}

template <class T, class Lanes>
FX_FN void gemm_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  __shared__ T of_a[kDepth][kSide + 1], of_b[kDepth][kSide + 1];
  const FxView& result = call.views[0];
  const FxView& a = call.views[1];
  const FxView& b = call.views[2];
  const int64_t down = num_tiles(result.size[1], kSide), across = num_tiles(result.size[2], kSide);
  const int64_t batch = unit / (down * across);
  const int64_t i0 = unit / across % down * kSide, j0 = unit % across * kSide;
  const int row = lanes.lane() / kAcross, column = lanes.lane() % kAcross;
  const bool a_by_rows = a.stride[2] == 1, b_by_rows = b.stride[2] == 1;
  T sums[kOwn][kOwn] = {};
  for (int64_t k0 = 0; k0 < a.size[2]; k0 += kDepth) {
    // Neighbouring threads read contiguous elements.
    for (int i = lanes.lane(); i < kSide * kDepth; i += static_cast<int>(kGemmLanes)) {
      const int a_k = a_by_rows ? i % kDepth : i / kSide, a_i = a_by_rows ? i / kDepth : i % kSide;
      const int b_k = b_by_rows ? i / kSide : i % kDepth, b_j = b_by_rows ? i % kSide : i / kDepth;
      of_a[a_k][a_i] = load_element<T>(a, batch, i0 + a_i, k0 + a_k);
      of_b[b_k][b_j] = load_element<T>(b, batch, k0 + b_k, j0 + b_j);
    }
    __syncthreads();
    const int depth = static_cast<int>(smaller<int64_t>(kDepth, a.size[2] - k0));
    for (int k = 0; k < depth; ++k) {
      T x[kOwn], y[kOwn];
      FX_UNROLL
      for (int i = 0; i < kOwn; ++i) {
        x[i] = of_a[k][row + i * kAcross];
        y[i] = of_b[k][column + i * kAcross];
      }
      FX_UNROLL
      for (int i = 0; i < kOwn; ++i) {
        FX_UNROLL
        for (int j = 0; j < kOwn; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  FX_UNROLL
  for (int i = 0; i < kOwn; ++i) {
    FX_UNROLL
    for (int j = 0; j < kOwn; ++j) {
      const int64_t to_row = i0 + row + i * kAcross, to_column = j0 + column + j * kAcross;
      if (to_row >= result.size[1] || to_column >= result.size[2]) continue;
      store_one(result, batch * result.stride[0] + to_row * result.stride[1] + to_column * result.stride[2],
                gemm_finish(call, batch, to_row, to_column, sums[i][j]));
    }
  }
}
#endif

}  // namespace
}  // namespace fxopt::kernels
