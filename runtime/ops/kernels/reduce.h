// Sums and other folds in one order for all devices (ops/README.md, "The order of sums").
//
// Of n numbers: number i belongs to chunk i / kChunk, and in its chunk to lane i % 32. A lane folds its numbers in order, beginning with
// the identity. Lanes are folded in halves: l with l + 16, then l + 8, 4, 2, 1. The results of chunks are n / kChunk numbers, which are
// folded in the same way, until one is left. One lane with vectors of 32, a warp, or many warps by chunks compute the same.
#pragma once

#include "runtime/ops/kernels/math.h"
#include "runtime/ops/kernels/tile.h"

namespace fxopt::kernels {
namespace {

constexpr int kFoldLanes = 32;
constexpr int64_t kChunk = 4096;
constexpr int kFoldLevels = 4;  // kChunk^4 numbers are more than any memory has

struct SumFold {
  template <class T>
  FX_FN static T identity() {
    return T(0);
  }
  template <class T>
  FX_FN static T of(T a, T b) {
    return add(a, b);
  }
};

// A NaN stays.
struct MaxFold {
  template <class T>
  FX_FN static T identity() {
    if constexpr (kIsInteger<T>) {
      return INT64_MIN;
    } else {
      return -infinity<T>();
    }
  }
  template <class T>
  FX_FN static T of(T a, T b) {
    return is_nan(a) || a > b ? a : b;
  }
};

template <class Fold, class T>
FX_FN T fold_lanes(T* lane) {
  for (int half = kFoldLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lane[l] = Fold::of(lane[l], lane[l + half]);
  }
  return lane[0];
}

// The fold of numbers that come one chunk after the other: lanes of each level are filled as their numbers arrive.
template <class Fold, class T>
class ChunkFold {
 public:
  FX_FN ChunkFold() {
    for (int level = 0; level < kFoldLevels; ++level) reset(level);
  }
  // The result of the next chunk.
  FX_FN void add_chunk(T x) {
    for (int level = 0;; ++level) {
      T& lane = lane_[level][count_[level] % kFoldLanes];
      lane = Fold::of(lane, x);
      if (++count_[level] < kChunk || level + 1 == kFoldLevels) return;
      x = fold_lanes<Fold>(lane_[level]);
      reset(level);
    }
  }
  // The fold of all, of which there is at least one.
  FX_FN T result() {
    int top = 0;
    for (int level = 0; level < kFoldLevels; ++level) top = count_[level] > 0 ? level : top;
    for (int level = 0; level < top; ++level) {
      if (count_[level] == 0) continue;
      const T x = fold_lanes<Fold>(lane_[level]);
      T& lane = lane_[level + 1][count_[level + 1]++ % kFoldLanes];
      lane = Fold::of(lane, x);
    }
    if (top == 0 && count_[0] == 1) return lane_[0][0];
    return fold_lanes<Fold>(lane_[top]);
  }

 private:
  FX_FN void reset(int level) {
    count_[level] = 0;
    for (int l = 0; l < kFoldLanes; ++l) lane_[level][l] = Fold::template identity<T>();
  }
  T lane_[kFoldLevels][kFoldLanes];
  int64_t count_[kFoldLevels];
};

// The fold of n numbers by one lane. load(begin, count, out) computes numbers [begin, begin + count), at most kTile of them.
template <class Fold, class T, class Load>
FX_FN T fold_all(int64_t n, const Load& load) {
  static_assert(kChunk % kTile == 0 && kTile % kFoldLanes == 0);
  ChunkFold<Fold, T> chunks;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = smaller(begin + kChunk, n);
    T lane[kFoldLanes];
    for (int l = 0; l < kFoldLanes; ++l) lane[l] = Fold::template identity<T>();
    for (int64_t at = begin; at < end; at += kTile) {
      const int count = static_cast<int>(smaller<int64_t>(kTile, end - at));
      T x[kTile];
      load(at, count, x);
      int i = 0;
      for (; i + kFoldLanes <= count; i += kFoldLanes) {
        for (int l = 0; l < kFoldLanes; ++l) lane[l] = Fold::of(lane[l], x[i + l]);
      }
      for (int l = 0; i + l < count; ++l) lane[l] = Fold::of(lane[l], x[i + l]);
    }
    chunks.add_chunk(fold_lanes<Fold>(lane));
  }
  return n == 0 ? Fold::template identity<T>() : chunks.result();
}

// The folds of n rows of `width` numbers, column by column. load(row, out) computes the numbers of a row.
constexpr int kColumns = 64;
template <class Fold, class T, class Load>
FX_FN void fold_columns(int64_t n, int width, const Load& load, T* result) {
  ChunkFold<Fold, T> chunks[kColumns];
  T lane[kFoldLanes][kColumns];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int count = static_cast<int>(smaller(kChunk, n - begin));
    for (int l = 0; l < kFoldLanes; ++l) {
      for (int c = 0; c < width; ++c) lane[l][c] = Fold::template identity<T>();
    }
    for (int i = 0; i < count; ++i) {
      T x[kColumns];
      load(begin + i, x);
      T* to = lane[i % kFoldLanes];
      for (int c = 0; c < width; ++c) to[c] = Fold::of(to[c], x[c]);
    }
    for (int half = kFoldLanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) {
        for (int c = 0; c < width; ++c) lane[l][c] = Fold::of(lane[l][c], lane[l + half][c]);
      }
    }
    if (n <= kChunk) {
      for (int c = 0; c < width; ++c) result[c] = lane[0][c];
      return;
    }
    for (int c = 0; c < width; ++c) chunks[c].add_chunk(lane[0][c]);
  }
  for (int c = 0; c < width; ++c) result[c] = n == 0 ? Fold::template identity<T>() : chunks[c].result();
}

// A view of rank r as one of its first r - inner dimensions and one of the others.
FX_FN void split_view(const FxView& view, int inner, FxView& outer, FxView& rest) {
  outer = rest = view;
  outer.rank = static_cast<uint8_t>(view.rank - inner);
  rest.rank = static_cast<uint8_t>(inner);
  for (int d = 0; d < inner; ++d) {
    rest.size[d] = view.size[outer.rank + d];
    rest.stride[d] = view.stride[outer.rank + d];
  }
}

// Elements [begin, begin + n) of a view whose first element lies `offset` elements further on.
template <class T>
FX_FN void load_from(const FxView& view, int64_t offset, int64_t begin, int64_t n, T* out) {
  if (view.is_number) {
    const T x = number_as<T>(view.number);
    for (int64_t i = 0; i < n; ++i) out[i] = x;
    return;
  }
  const int64_t stride = view.rank == 0 ? 1 : view.stride[view.rank - 1];
  for_each_run(view, begin, n, [&](int64_t at, int64_t from, int64_t length) {
    load_run(view.dtype, view.data, offset + from, stride, length, out + at);
  });
}

template <class T>
FX_FN void store_to(const FxView& view, int64_t offset, int64_t begin, int64_t n, const T* in) {
  const int64_t stride = view.rank == 0 ? 1 : view.stride[view.rank - 1];
  for_each_run(view, begin, n, [&](int64_t at, int64_t to, int64_t length) {
    store_run(view.dtype, view.data, offset + to, stride, length, in + at);
  });
}

// Views of a reduction: the result, over the dimensions that stay; the operand, over these and then over params[0] reduced ones.
//
// Phase 0: a unit has a tile of kColumns results and one chunk of the reduced elements. Phase 1, where there are several chunks:
// a tile of results. Partial results lie in the workspace, those of a chunk together.
struct ReductionSizes {
  int64_t results, elements, tiles, chunks;
};
FX_FN ReductionSizes reduction_sizes(const FxCall& call) {
  FxView outer, inner;
  split_view(call.views[1], static_cast<int>(call.params[0].integer), outer, inner);
  ReductionSizes sizes;
  sizes.results = num_elements(outer);
  sizes.elements = num_elements(inner);
  sizes.tiles = num_tiles(sizes.results, kColumns);
  sizes.chunks = larger<int64_t>(num_tiles(sizes.elements, kChunk), 1);
  return sizes;
}
FX_FN int64_t reduction_units(const FxCall& call, uint32_t phase) {
  const ReductionSizes sizes = reduction_sizes(call);
  return phase == 0 ? sizes.tiles * sizes.chunks : sizes.chunks > 1 ? sizes.tiles : 0;
}
template <class T>
FX_FN int64_t reduction_workspace(const FxCall& call) {
  const ReductionSizes sizes = reduction_sizes(call);
  return sizes.chunks > 1 ? sizes.chunks * sizes.results * static_cast<int64_t>(sizeof(T)) : 0;
}

template <class Fold, class T>
FX_FN void fold_chunk(const FxCall& call, int64_t tile, int64_t chunk, int width, T* x) {
  FxView outer, inner;
  split_view(call.views[1], static_cast<int>(call.params[0].integer), outer, inner);
  const int64_t begin = chunk * kChunk, n = smaller(kChunk, num_elements(inner) - begin);
  const bool is_row = inner.rank > 0 && inner.stride[inner.rank - 1] == 1 && width < kColumns / 2;
  const bool has_wide_rows = outer.rank > 0 && outer.stride[outer.rank - 1] == 1 && !is_row;
  if (has_wide_rows) {
    fold_columns<Fold, T>(
        n, width,
        [&](int64_t row, T* out) { load_from(outer, offset_of(inner, begin + row), tile * kColumns, width, out); }, x);
    return;
  }
  for (int c = 0; c < width; ++c) {
    const int64_t offset = offset_of(outer, tile * kColumns + c);
    x[c] =
        fold_all<Fold, T>(n, [&](int64_t at, int count, T* out) { load_from(inner, offset, begin + at, count, out); });
  }
}

template <class Fold, class T>
FX_FN void reduction_unit(const FxCall& call, uint32_t phase, int64_t unit) {
  const ReductionSizes sizes = reduction_sizes(call);
  T* partial = static_cast<T*>(call.workspace);
  const int64_t tile = phase == 0 ? unit / sizes.chunks : unit;
  const int width = static_cast<int>(smaller<int64_t>(kColumns, sizes.results - tile * kColumns));
  T x[kColumns];
  if (phase == 0) {
    const int64_t chunk = unit % sizes.chunks;
    fold_chunk<Fold, T>(call, tile, chunk, width, x);
    if (sizes.chunks > 1) {
      for (int c = 0; c < width; ++c) partial[chunk * sizes.results + tile * kColumns + c] = x[c];
      return;
    }
  } else {
    const T* from = partial + tile * kColumns;
    fold_columns<Fold, T>(
        sizes.chunks, width,
        [&](int64_t chunk, T* out) {
          for (int c = 0; c < width; ++c) out[c] = from[chunk * sizes.results + c];
        },
        x);
  }
  store_to(call.views[0], 0, tile * kColumns, width, x);
}

}  // namespace
}  // namespace fxopt::kernels
