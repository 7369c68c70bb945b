// Operators that use indices: embedding, its gradient, and the negative log likelihood. An index
// beyond its dimension is an error of the call, and no element is read for this index.
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

// Returns the index that the view `indices` stores at position `element`. If the index is not in
// [0, bound), reports an error and returns -1.
FX_FN int64_t load_index(const FxCall& call, const FxView& indices, int64_t element, int64_t bound) {
  const int64_t index = load_one<int64_t>(indices, offset_of(indices, element));
  if (index >= 0 && index < bound) return index;
  fail(call, element, FX_ERROR_INDEX);
  return -1;
}

// The result [indices..., D] is the first view. The weight [V, D] and the indices follow. A unit of
// work computes a tile of kTile elements of the result.
template <class T, class Lanes>
FX_FN void gather_rows_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  const FxView& result = call.views[0];
  const FxView& weight = call.views[1];
  const int64_t width = weight.size[1];
  const int n = tile_size(num_elements(result), unit);
  T x[kOwnOf<Lanes>];
  T* to = x;
  for (int at = lanes.lane(); at < n;) {
    const int64_t element = unit * kTile + at;
    const int64_t column = element % width;
    const int count = Lanes::kIsOne ? static_cast<int>(smaller<int64_t>(width - column, n - at)) : 1;
    const int64_t row = load_index(call, call.views[2], element / width, weight.size[0]);
    if (row < 0) return;
    load_run(weight.dtype, weight.data, row * weight.stride[0] + column * weight.stride[1], weight.stride[1], count,
             to);
    to += count;
    at += Lanes::kIsOne ? count : Lanes::kTileLanes;
  }
  store_tile(lanes, result, unit * kTile, n, x);
}

// The first view is the result [V, D]. The next views are the gradient g [indices..., D] and the
// indices. params[0] is the padding row.
//
// The kernel adds row i of g to row indices[i] of the result. If indices[i] is the padding row, the
// kernel skips row i. The work has three phases:
// - Phase 0 sets the sums to zero.
// - In phase 1, a unit of work computes the sums in kColumns columns of the result. The unit adds
//   the rows of g in the order of their index: row 0, row 1, and so on. Different units compute
//   different columns, so no two units add to the same sum.
// - Phase 2 has work only if the sums are in the workspace. Phase 2 converts the sums to the dtype
//   of the result.
//
// Sums have the type in which the kernel computes (FxCall::compute). The sums are stored in the
// result in two cases: a float32 result that is computed in float, and a float64 result that is
// computed in double. In any other case, the sums are stored in the workspace.
FX_FN bool adds_in_result(const FxCall& call) {
  const uint8_t type = call.views[0].dtype;
  return (type == kF32 && call.compute == FX_COMPUTE_FLOAT) || (type == kF64 && call.compute == FX_COMPUTE_DOUBLE);
}
FX_FN int64_t add_rows_units(const FxCall& call, uint32_t phase) {
  if (phase == 1) return num_tiles(call.views[0].size[1], kColumns);
  return phase == 2 && adds_in_result(call) ? 0 : num_tiles(num_elements(call.views[0]));
}
FX_FN int64_t add_rows_workspace(const FxCall& call) {
  return adds_in_result(call) ? 0 : num_elements(call.views[0]) * (call.compute == FX_COMPUTE_FLOAT ? 4 : 8);
}
constexpr uint32_t most_of_add_rows_lanes = kTileLanes;
FX_FN uint32_t add_rows_lanes(const FxCall&, uint32_t phase) { return phase == 1 ? kColumns : kTileLanes; }

// The memory of the sums. Element (v, c) is at offset v * stride + c * step.
template <class T>
struct RowSums {
  T* data;
  int64_t stride, step;
  FX_FN explicit RowSums(const FxCall& call) {
    const FxView& result = call.views[0];
    const bool in_result = adds_in_result(call);
    data = static_cast<T*>(in_result ? result.data : call.workspace);
    stride = in_result ? result.stride[0] : result.size[1];
    step = in_result ? result.stride[1] : 1;
  }
};
template <class T, class Lanes>
FX_FN void add_rows_unit(const Lanes& lanes, const FxCall& call, uint32_t phase, int64_t unit) {
  const FxView& result = call.views[0];
  const RowSums<T> sums(call);
  const int64_t first = unit * (phase == 1 ? kColumns : kTile);
  if (phase != 1) {
    for_each_piece(lanes, tile_size(num_elements(result), unit), [&](int64_t begin, int count) {
      T zeros[kPiece<Lanes>] = {};
      if (adds_in_result(call)) return store_piece(lanes, result, 0, first + begin, count, zeros);
      T* in_workspace = static_cast<T*>(call.workspace) + first + begin;
      if (phase == 2) return store_piece(lanes, result, 0, first + begin, count, in_workspace);
      for (int i = 0; i < count; ++i) in_workspace[i] = T(0);
    });
    return;
  }
  FxView g, columns;
  split_view(call.views[1], 1, g, columns);
  const int64_t n = num_elements(call.views[2]), width = smaller<int64_t>(kColumns, result.size[1] - first);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t v = load_index(call, call.views[2], i, result.size[0]);
    if (v < 0) return;
    if (v == call.params[0].integer) continue;
    const int64_t row = offset_of(g, i);
    for_each_piece(lanes, width, [&](int64_t begin, int count) {
      T x[Lanes::kIsOne ? kColumns : 1];
      load_piece(lanes, columns, row, first + begin, count, x);
      T* to = sums.data + v * sums.stride + (first + begin) * sums.step;
      for (int c = 0; c < count; ++c) to[c * sums.step] += x[c];
    });
  }
}

// The views of nll_loss are the two results (the loss and the sum of weights), then the operands:
// x [N, C], target [N] and weight [C]. If there is no weight, its view is the number 1. The params
// are the reduction (0 none, 1 mean, 2 sum) and the ignored class. There is one unit of work,
// because a batch has few terms.
FX_FN int64_t one_unit(const FxCall&, uint32_t) { return 1; }
constexpr uint32_t most_of_nll_loss_lanes = kMostFoldLanes;
FX_FN uint32_t nll_loss_lanes(const FxCall& call, uint32_t) { return fold_lanes(call.views[2].size[0]); }
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
template <class T, class Lanes>
FX_FN void nll_loss_unit(const Lanes& lanes, const FxCall& call) {
  const int64_t n = call.views[2].size[0], reduction = call.params[0].integer;
  const auto terms = [&](bool of_weights) {
    return fold_all<SumFold, T>(lanes, n, [&](int64_t begin, int count, T* out) {
      for (int i = 0; i < count; ++i) {
        T weight;
        const T term = nll_term(call, begin + i, weight);
        out[i] = of_weights ? weight : term;
      }
    });
  };
  if (reduction == 0) {
    for_each_piece(lanes, n, [&](int64_t begin, int count) {
      for (int64_t i = begin; i < begin + count; ++i) {
        T weight;
        store_one(call.views[0], offset_of(call.views[0], i), nll_term(call, i, weight));
      }
    });
    if (lanes.lane() == 0) store_one(call.views[1], 0, T(0));
    return;
  }
  const T weight = terms(true), sum = terms(false);
  if (lanes.lane() != 0) return;
  store_one(call.views[0], 0, reduction == 1 ? sum / weight : sum);
  store_one(call.views[1], 0, weight);
}

// The views are the result [N, C], then the operands: the gradient g of the loss, target [N],
// weight [C], and the sum of weights. If there is no weight, its view is the number 1. The params
// are those of nll_loss. A unit of work computes one row.
FX_FN int64_t nll_loss_backward_units(const FxCall& call, uint32_t) { return call.views[0].size[0]; }
// Returns the gradient of row `unit` at the class of the row, and sets c to the class. If the row
// is ignored or has an illegal class, c is -1.
template <class T>
FX_FN T nll_gradient(const FxCall& call, int64_t unit, int64_t& c) {
  const FxView& g = call.views[1];
  const FxView& target = call.views[2];
  const FxView& weights = call.views[3];
  const int64_t given = load_one<int64_t>(target, offset_of(target, unit));
  c = given == call.params[1].integer ? -1 : load_index(call, target, unit, call.views[0].size[1]);
  if (c < 0) return T(0);
  const T weight = weights.is_number ? number_as<T>(weights.number) : load_one<T>(weights, c * weights.stride[0]);
  const T x = -(load_one<T>(g, g.rank == 0 ? 0 : unit * g.stride[0]) * weight);
  return call.params[0].integer == 1 ? x / load_one<T>(call.views[4], 0) : x;
}
template <class T, class Lanes>
FX_FN void nll_loss_backward_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  const FxView& result = call.views[0];
  int64_t c;
  const T gradient = nll_gradient<T>(call, unit, c);
  for_each_piece(lanes, result.size[1], [&](int64_t begin, int count) {
    T x[kPiece<Lanes>];
    for (int i = 0; i < count; ++i) x[i] = begin + i == c ? gradient : T(0);
    store_run(result.dtype, result.data, unit * result.stride[0] + begin * result.stride[1], result.stride[1], count,
              x);
  });
}

}  // namespace
}  // namespace fxopt::kernels
