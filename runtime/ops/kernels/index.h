// By index: embedding, its gradient, and the negative log likelihood. An index beyond its dimension is an error of the call and reads
// nothing.
#pragma once

#include "runtime/ops/kernels/reduce.h"

namespace fxopt::kernels {
namespace {

FX_FN void fail(const FxCall& call, int64_t element, FxErrorCode code) {
  const int64_t word = element * 256 + code;
#if defined(__CUDA_ARCH__)
  atomicMin(reinterpret_cast<long long*>(call.error), static_cast<long long>(word));
#else
  int64_t before = __atomic_load_n(call.error, __ATOMIC_RELAXED);
  while (word < before &&
         !__atomic_compare_exchange_n(call.error, &before, word, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}

// Index `element` of a view; -1 and an error where it is not in [0, bound).
FX_FN int64_t load_index(const FxCall& call, const FxView& indices, int64_t element, int64_t bound) {
  const int64_t index = load_one<int64_t>(indices, offset_of(indices, element));
  if (index >= 0 && index < bound) return index;
  fail(call, element, FX_ERROR_INDEX);
  return -1;
}

// Views: the result [indices..., D]; weight [V, D], indices. A unit has a tile of the result.
FX_FN int64_t gather_rows_units(const FxCall& call, uint32_t) { return num_tiles(num_elements(call.views[0])); }
template <class T>
FX_FN void gather_rows_unit(const FxCall& call, int64_t unit) {
  const FxView& result = call.views[0];
  const FxView& weight = call.views[1];
  const int64_t width = weight.size[1];
  const int n = tile_size(num_elements(result), unit);
  T x[kTile];
  for (int at = 0; at < n;) {
    const int64_t element = unit * kTile + at;
    const int64_t column = element % width;
    const int count = static_cast<int>(smaller<int64_t>(width - column, n - at));
    const int64_t row = load_index(call, call.views[2], element / width, weight.size[0]);
    if (row < 0) return;
    load_run(weight.dtype, weight.data, row * weight.stride[0] + column * weight.stride[1], weight.stride[1], count,
             x + at);
    at += count;
  }
  store_to(result, 0, unit * kTile, n, x);
}

// Views: the result [V, D]; g [indices..., D], indices. params: the padding row.
//
// A unit has kColumns columns of the result: it adds rows of g in the order of their indices, so that no thread meets another's sums.
// In the type that bodies compute in: where the result is narrower, in the workspace, which phase 1 stores.
FX_FN bool adds_in_result(const FxCall& call) {
  const uint8_t type = call.views[0].dtype;
  return (type == kF32 && call.compute == FX_COMPUTE_FLOAT) || (type == kF64 && call.compute == FX_COMPUTE_DOUBLE);
}
FX_FN int64_t add_rows_units(const FxCall& call, uint32_t phase) {
  if (phase == 1 && adds_in_result(call)) return 0;
  return phase == 0 ? num_tiles(call.views[0].size[1], kColumns) : num_tiles(num_elements(call.views[0]));
}
template <class T>
FX_FN int64_t add_rows_workspace(const FxCall& call) {
  return adds_in_result(call) ? 0 : num_elements(call.views[0]) * static_cast<int64_t>(sizeof(T));
}
template <class T>
FX_FN void add_rows_unit(const FxCall& call, int64_t unit) {
  const FxView& result = call.views[0];
  FxView g, columns;
  split_view(call.views[1], 1, g, columns);
  const int64_t rows = result.size[0], begin = unit * kColumns, n = num_elements(call.views[2]);
  const int width = static_cast<int>(smaller<int64_t>(kColumns, result.size[1] - begin));
  const bool in_result = adds_in_result(call);
  T* sums = in_result ? static_cast<T*>(result.data) : static_cast<T*>(call.workspace);
  const int64_t stride = in_result ? result.stride[0] : result.size[1];
  const int64_t step = in_result ? result.stride[1] : 1;
  for (int64_t v = 0; v < rows; ++v) {
    for (int c = 0; c < width; ++c) sums[v * stride + (begin + c) * step] = T(0);
  }
  const int64_t padding = call.params[0].integer;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t v = load_index(call, call.views[2], i, rows);
    if (v < 0) return;
    if (v == padding) continue;
    T x[kColumns];
    load_from(columns, offset_of(g, i), begin, width, x);
    for (int c = 0; c < width; ++c) sums[v * stride + (begin + c) * step] += x[c];
  }
}
template <class T>
FX_FN void add_rows_store(const FxCall& call, int64_t unit) {
  const T* sums = static_cast<const T*>(call.workspace) + unit * kTile;
  store_to(call.views[0], 0, unit * kTile, tile_size(num_elements(call.views[0]), unit), sums);
}

// Views: the loss, the sum of weights; x [N, C], target [N], weight [C] or 1. params: reduction (0 none, 1 mean, 2 sum), the ignored
// class. One unit: the terms of a batch are few.
template <class T>
FX_FN T nll_term(const FxCall& call, int64_t i, T& weight) {
  const FxView& x = call.views[2];
  const FxView& target = call.views[3];
  weight = T(0);
  const int64_t given = load_one<int64_t>(target, offset_of(target, i));
  if (given == call.params[1].integer) return T(0);
  const int64_t c = load_index(call, target, i, x.size[1]);
  if (c < 0) return T(0);
  const FxView& weights = call.views[4];
  weight = weights.is_number ? number_as<T>(weights.number) : load_one<T>(weights, c * weights.stride[0]);
  return -(load_one<T>(x, i * x.stride[0] + c * x.stride[1]) * weight);
}
template <class T>
FX_FN void nll_loss_unit(const FxCall& call) {
  const int64_t n = call.views[2].size[0], reduction = call.params[0].integer;
  const auto terms = [&](bool of_weights) {
    return fold_all<SumFold, T>(n, [&](int64_t begin, int count, T* out) {
      for (int i = 0; i < count; ++i) {
        T weight;
        const T term = nll_term(call, begin + i, weight);
        out[i] = of_weights ? weight : term;
      }
    });
  };
  if (reduction == 0) {
    for (int64_t i = 0; i < n; ++i) {
      T weight;
      store_one(call.views[0], offset_of(call.views[0], i), nll_term(call, i, weight));
    }
    store_one(call.views[1], 0, T(0));
    return;
  }
  const T weight = terms(true), sum = terms(false);
  store_one(call.views[0], 0, reduction == 1 ? sum / weight : sum);
  store_one(call.views[1], 0, weight);
}

// Views: the result [N, C]; g, target [N], weight [C] or 1, the sum of weights. params: as above. A unit has one row.
FX_FN int64_t nll_loss_backward_units(const FxCall& call, uint32_t) { return call.views[0].size[0]; }
template <class T>
FX_FN void nll_loss_backward_unit(const FxCall& call, int64_t unit) {
  const FxView& result = call.views[0];
  const FxView& g = call.views[1];
  const FxView& target = call.views[2];
  const FxView& weights = call.views[3];
  const int64_t width = result.size[1];
  T zeros[kTile];
  for (int i = 0; i < kTile; ++i) zeros[i] = T(0);
  for (int64_t at = 0; at < width; at += kTile) {
    store_run(result.dtype, result.data, unit * result.stride[0] + at * result.stride[1], result.stride[1],
              smaller<int64_t>(kTile, width - at), zeros);
  }
  const int64_t given = load_one<int64_t>(target, offset_of(target, unit));
  if (given == call.params[1].integer) return;
  const int64_t c = load_index(call, target, unit, width);
  if (c < 0) return;
  const T weight = weights.is_number ? number_as<T>(weights.number) : load_one<T>(weights, c * weights.stride[0]);
  T x = -(load_one<T>(g, g.rank == 0 ? 0 : unit * g.stride[0]) * weight);
  if (call.params[0].integer == 1) x /= load_one<T>(call.views[4], 0);
  store_one(result, unit * result.stride[0] + c * result.stride[1], x);
}

}  // namespace
}  // namespace fxopt::kernels
