// Matrix products on a CPU. Each element of the result is computed by one chain: sum = fma(a[k],
// b[k], sum) for k = 0, 1, ..., starting with sum = 0. The chain does not depend on blocks or
// vectors. Results therefore have the same bits with every instruction set and every number of
// threads.
//
// The blocks follow Goto and van de Geijn, "Anatomy of high-performance matrix multiplication"
// (2008). A unit of work computes kBlockRows x kBlockColumns elements of the result. Operands are
// converted to the type in which the body computes, and are packed into panels. A micro kernel
// reads the panels in order.
#pragma once

#include "runtime/ops/kernels/tile.h"

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

namespace fxopt::kernels {
namespace {

constexpr int kBlockRows = 96, kBlockColumns = 256, kBlockDepth = 256;
constexpr int kPanelRows = 6;

// A vector of T that is as wide as the instruction set allows. It has the operations that gemm
// needs.
template <class T>
struct Vector {
  static constexpr int kWidth = 1;
  T x;
  static Vector load(const T* from) { return {*from}; }
  static Vector all(T x) { return {x}; }
  void store(T* to) const { *to = x; }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return {kernels::multiply_add(a.x, b.x, c.x)}; }
};

#if defined(__AVX512F__)
template <>
struct Vector<float> {
  static constexpr int kWidth = 16;
  __m512 x;
  static Vector load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static Vector all(float x) { return {_mm512_set1_ps(x)}; }
  void store(float* to) const { _mm512_storeu_ps(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return {_mm512_fmadd_ps(a.x, b.x, c.x)}; }
};
template <>
struct Vector<double> {
  static constexpr int kWidth = 8;
  __m512d x;
  static Vector load(const double* from) { return {_mm512_loadu_pd(from)}; }
  static Vector all(double x) { return {_mm512_set1_pd(x)}; }
  void store(double* to) const { _mm512_storeu_pd(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return {_mm512_fmadd_pd(a.x, b.x, c.x)}; }
};
#elif defined(__FMA__)
template <>
struct Vector<float> {
  static constexpr int kWidth = 8;
  __m256 x;
  static Vector load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static Vector all(float x) { return {_mm256_set1_ps(x)}; }
  void store(float* to) const { _mm256_storeu_ps(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return {_mm256_fmadd_ps(a.x, b.x, c.x)}; }
};
template <>
struct Vector<double> {
  static constexpr int kWidth = 4;
  __m256d x;
  static Vector load(const double* from) { return {_mm256_loadu_pd(from)}; }
  static Vector all(double x) { return {_mm256_set1_pd(x)}; }
  void store(double* to) const { _mm256_storeu_pd(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return {_mm256_fmadd_pd(a.x, b.x, c.x)}; }
};
#endif

template <class T>
constexpr int kPanelColumns = 2 * Vector<T>::kWidth < 8 ? 8 : 2 * Vector<T>::kWidth;

// Adds the product of the panels a and b to sums[kPanelRows][kPanelColumns]. For each of the
// `depth` values of k, a has kPanelRows numbers and b has kPanelColumns numbers.
template <class T>
inline void micro_kernel(int depth, const T* a, const T* b, T* sums, int stride) {
  using V = Vector<T>;
  constexpr int kVectors = kPanelColumns<T> / V::kWidth;
  V c[kPanelRows][kVectors];
  for (int r = 0; r < kPanelRows; ++r) {
    for (int v = 0; v < kVectors; ++v) c[r][v] = V::load(sums + r * stride + v * V::kWidth);
  }
  for (int k = 0; k < depth; ++k) {
    V y[kVectors];
    for (int v = 0; v < kVectors; ++v) y[v] = V::load(b + k * kPanelColumns<T> + v * V::kWidth);
    for (int r = 0; r < kPanelRows; ++r) {
      const V x = V::all(a[k * kPanelRows + r]);
      for (int v = 0; v < kVectors; ++v) c[r][v] = V::multiply_add(x, y[v], c[r][v]);
    }
  }
  for (int r = 0; r < kPanelRows; ++r) {
    for (int v = 0; v < kVectors; ++v) c[r][v].store(sums + r * stride + v * V::kWidth);
  }
}

// A matrix of a view with the dimensions (batch, rows, columns). Element (i, j) is at offset `at` +
// i * row + j * column.
struct Matrix {
  const FxView* view;
  int64_t at, row, column;

  void transpose() {
    const int64_t step = row;
    row = column;
    column = step;
  }
};

inline Matrix matrix_of(const FxView& view, int64_t batch) {
  return {&view, batch * view.stride[0], view.stride[1], view.stride[2]};
}

// Packs `outer` x `depth` elements of a matrix, starting at row `first` and column k, into panels.
// A panel has `width` rows of the matrix. The panel is padded with zeros to depth x width elements.
template <class T>
inline void pack(const Matrix& from, int64_t first, int outer, int64_t k, int depth, int width, T* to) {
  const FxView& view = *from.view;
  T x[kBlockDepth > kBlockColumns ? kBlockDepth : kBlockColumns];
  const int panels = (outer + width - 1) / width;
  if (outer % width != 0) {
    T* last = to + int64_t{panels - 1} * depth * width;
    for (int i = 0; i < depth * width; ++i) last[i] = T(0);
  }
  const int64_t at = from.at + first * from.row + k * from.column;
  if (from.column == 1 || from.row != 1) {
    for (int i = 0; i < outer; ++i) {
      load_run(view.dtype, view.data, at + i * from.row, from.column, depth, x);
      T* panel = to + int64_t{i / width} * depth * width + i % width;
      for (int d = 0; d < depth; ++d) panel[d * width] = x[d];
    }
    return;
  }
  for (int d = 0; d < depth; ++d) {
    load_run(view.dtype, view.data, at + d * from.column, from.row, outer, x);
    for (int i = 0; i < outer; ++i) to[int64_t{i / width} * depth * width + d * width + i % width] = x[i];
  }
}

// The result [B, M, N] is the first view. The operands a [B, M, K] and b [B, K, N] follow. For
// addmm, a third operand c [B, M, N] follows, and the params are beta and alpha.
inline int64_t gemm_units(const FxCall& call, uint32_t) {
  const FxView& result = call.views[0];
  return result.size[0] * num_tiles(result.size[1], kBlockRows) * num_tiles(result.size[2], kBlockColumns);
}

template <class T>
inline void gemm_finish(const FxCall& call, int64_t batch, int64_t i, int64_t j, int columns, T* sums) {
  if (call.num_operands == 3) {
    const FxView& c = call.views[3];
    const T beta = number_as<T>(call.params[0]), alpha = number_as<T>(call.params[1]);
    T x[kBlockColumns];
    load_run(c.dtype, c.data, batch * c.stride[0] + i * c.stride[1] + j * c.stride[2], c.stride[2], columns, x);
    if (alpha != T(1)) {
      for (int n = 0; n < columns; ++n) sums[n] = multiply(alpha, sums[n]);
    }
    // If beta is 0, c is ignored, even if c is NaN.
    if (beta != T(0)) {
      for (int n = 0; n < columns; ++n) sums[n] = add(sums[n], beta == T(1) ? x[n] : multiply(beta, x[n]));
    }
  }
  const FxView& result = call.views[0];
  store_run(result.dtype, result.data, batch * result.stride[0] + i * result.stride[1] + j * result.stride[2],
            result.stride[2], columns, sums);
}

template <class T>
inline void gemm_unit(const OneLane&, const FxCall& call, int64_t unit) {
  const FxView& result = call.views[0];
  const int64_t row_blocks = num_tiles(result.size[1], kBlockRows);
  const int64_t column_blocks = num_tiles(result.size[2], kBlockColumns);
  const int64_t batch = unit / (row_blocks * column_blocks);
  const int64_t i0 = unit / column_blocks % row_blocks * kBlockRows, j0 = unit % column_blocks * kBlockColumns;
  const int rows = static_cast<int>(smaller<int64_t>(kBlockRows, result.size[1] - i0));
  const int columns = static_cast<int>(smaller<int64_t>(kBlockColumns, result.size[2] - j0));
  const Matrix a = matrix_of(call.views[1], batch);
  Matrix b = matrix_of(call.views[2], batch);
  b.transpose();  // packed by columns
  const int64_t depth = call.views[1].size[2];
  constexpr int kWidth = kPanelColumns<T>;
  alignas(64) T packed_a[kBlockRows * kBlockDepth], packed_b[kBlockColumns * kBlockDepth];
  alignas(64) T sums[kBlockRows * kBlockColumns];
  const int row_panels = (rows + kPanelRows - 1) / kPanelRows, column_panels = (columns + kWidth - 1) / kWidth;
  for (int i = 0; i < row_panels * kPanelRows * kBlockColumns; ++i) sums[i] = T(0);
  for (int64_t k = 0; k < depth; k += kBlockDepth) {
    const int count = static_cast<int>(smaller<int64_t>(kBlockDepth, depth - k));
    pack(a, i0, rows, k, count, kPanelRows, packed_a);
    pack(b, j0, columns, k, count, kWidth, packed_b);
    for (int q = 0; q < column_panels; ++q) {
      for (int p = 0; p < row_panels; ++p) {
        micro_kernel(count, packed_a + p * count * kPanelRows, packed_b + q * count * kWidth,
                     sums + p * kPanelRows * kBlockColumns + q * kWidth, kBlockColumns);
      }
    }
  }
  for (int i = 0; i < rows; ++i) gemm_finish(call, batch, i0 + i, j0, columns, sums + i * kBlockColumns);
}

}  // namespace
}  // namespace fxopt::kernels
