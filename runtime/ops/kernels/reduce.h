// Sums and other folds, in the same order on all devices (ops/README.md, "The order of sums").
//
// A fold combines n numbers into one number by an operation, such as addition or maximum. The
// number with index i belongs to chunk i / kChunk. Within the chunk, the number belongs to fold
// lane i % 32. A fold lane folds its numbers in order, starting with the identity of the operation,
// such as 0. Then the 32 fold lanes are folded in pairs. The first pairs have the distance 16, and
// the next pairs have the distances 8, 4, 2 and 1. The n / kChunk results of the chunks are folded
// in the same way, until one number is left. A CPU core uses vectors of 32 fold lanes. On a GPU,
// each thread of a warp computes one fold lane, and each warp of a block folds one chunk at a time.
#pragma once

#include "runtime/ops/kernels/math.h"
#include "runtime/ops/kernels/tile.h"

namespace fxopt::kernels {
namespace {

constexpr int kFoldLanes = 32;
constexpr int64_t kChunk = 4096;
// Number of levels in ChunkFold. Level 0 folds the results of kChunk chunks, which contain kChunk^2
// numbers, into one result. Each higher level folds kChunk results of the level below. Level 3
// therefore folds kChunk^5 = 2^60 numbers, which need more bytes than any machine has.
constexpr int kFoldLevels = 4;
static_assert(kFoldLanes == kWarp && kChunk % kTile == 0 && kTile % kFoldLanes == 0);

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

// If an operand is NaN, the result is NaN.
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

// The partial results of the fold lanes (see the top of this file). A CPU core stores the partial
// results of all fold lanes. On a GPU, each thread of a warp stores the partial result of one fold
// lane. fold() returns the result in every thread.
template <class Fold, class T, bool kIsOne>
struct FoldLanes {
  T own[kFoldLanes];
  FX_FN void reset() {
    for (T& x : own) x = Fold::template identity<T>();
  }
  template <class Warp>
  FX_FN void add_to(const Warp&, int l, T x) {
    own[l] = Fold::of(own[l], x);
  }
  template <class Warp>
  FX_FN T fold(const Warp&) {
    for (int half = kFoldLanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) own[l] = Fold::of(own[l], own[l + half]);
    }
    return own[0];
  }
  template <class Warp>
  FX_FN T first(const Warp&) const {
    return own[0];
  }
};
template <class Fold, class T>
struct FoldLanes<Fold, T, false> {
  T own;
  FX_FN void reset() { own = Fold::template identity<T>(); }
  template <class Warp>
  FX_FN void add_to(const Warp& warp, int l, T x) {
    if (warp.lane() == l) own = Fold::of(own, x);
  }
  template <class Warp>
  FX_FN T fold(const Warp& warp) const {
    T x = own;
    for (int half = kFoldLanes / 2; half > 0; half /= 2) x = Fold::of(x, warp.from_lane_above(x, half));
    return warp.from_lane(x, 0);
  }
  template <class Warp>
  FX_FN T first(const Warp& warp) const {
    return warp.from_lane(own, 0);
  }
};

// Folds the results of chunks, which must be added in order. Every lane of a warp must add the
// result of every chunk.
template <class Fold, class T, class Warp>
class ChunkFold {
 public:
  FX_FN explicit ChunkFold(const Warp& warp = {}) : warp_(warp) {
    for (int level = 0; level < kFoldLevels; ++level) reset(level);
  }
  // Adds the result of the next chunk.
  FX_FN void add_chunk(T x) {
    for (int level = 0;; ++level) {
      lanes_[level].add_to(warp_, static_cast<int>(count_[level] % kFoldLanes), x);
      if (++count_[level] < kChunk || level + 1 == kFoldLevels) return;
      x = lanes_[level].fold(warp_);
      reset(level);
    }
  }
  // Returns the fold of all chunks. At least one chunk must have been added.
  FX_FN T result() {
    int top = 0;
    for (int level = 0; level < kFoldLevels; ++level) top = count_[level] > 0 ? level : top;
    for (int level = 0; level < top; ++level) {
      if (count_[level] == 0) continue;
      const T x = lanes_[level].fold(warp_);
      lanes_[level + 1].add_to(warp_, static_cast<int>(count_[level + 1]++ % kFoldLanes), x);
    }
    return top == 0 && count_[0] == 1 ? lanes_[0].first(warp_) : lanes_[top].fold(warp_);
  }

 private:
  FX_FN void reset(int level) {
    count_[level] = 0;
    lanes_[level].reset();
  }
  Warp warp_;
  FoldLanes<Fold, T, Warp::kIsOne> lanes_[kFoldLevels];
  int64_t count_[kFoldLevels];
};

// Folds the numbers [begin, end) of one chunk with one warp. Returns the result in each lane of the
// warp.
template <class Fold, class T, class Warp, class Load>
FX_FN T fold_chunk(const Warp& warp, int64_t begin, int64_t end, const Load& load) {
  FoldLanes<Fold, T, Warp::kIsOne> lanes;
  lanes.reset();
  if constexpr (Warp::kIsOne) {
    T* lane = lanes.own;
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
  } else {
    for (int64_t at = begin + warp.lane(); at < end; at += kFoldLanes) {
      T x;
      load(at, 1, &x);
      lanes.own = Fold::of(lanes.own, x);
    }
  }
  return lanes.fold(warp);
}

// Folds n numbers and returns the result in every lane. load(begin, count, out) computes the
// numbers [begin, begin + count), where count is at most kPiece. All lanes of the block must call
// this function.
template <class Fold, class T, class Lanes, class Load>
FX_FN T fold_all(const Lanes& lanes, int64_t n, const Load& load) {
  const auto warp = lanes.warp();
  if (n == 0) return Fold::template identity<T>();
  if (n <= kChunk) return fold_chunk<Fold, T>(warp, 0, n, load);
  ChunkFold<Fold, T, decltype(lanes.warp())> chunks(warp);
  const int warps = lanes.num_warps();
  for (int64_t begin = 0; begin < n; begin += warps * kChunk) {
    const int64_t own = begin + lanes.warp_index() * kChunk;
    const T x = fold_chunk<Fold, T>(warp, own, smaller(own + kChunk, n), load);
    if constexpr (Lanes::kIsOne) {
      chunks.add_chunk(x);
    } else {
      lanes.for_each_warp(x, [&](int w, T folded) {
        if (begin + w * kChunk < n) chunks.add_chunk(folded);
      });
    }
  }
  return chunks.result();
}
// fold_lanes() returns the number of lanes that fold n numbers. kMostFoldLanes is the maximum of
// this number.
constexpr uint32_t kMostFoldLanes = 8 * kWarp;
FX_FN uint32_t fold_lanes(int64_t n) {
  return static_cast<uint32_t>(smaller<int64_t>(kMostFoldLanes, kWarp * larger<int64_t>(1, num_tiles(n, kChunk))));
}

// Folds each column of a table of n rows and `width` columns. For each column, calls `result` once,
// with the column's index and the fold of the column's n numbers. The numbers of the table come
// from the function load(row, first, count, out). This function stores the numbers of one row in
// `out`, for the columns [first, first + count). On a GPU, fold_columns() uses kColumnWarps warps.
constexpr int kColumns = 64, kColumnWarps = 16;
constexpr uint32_t kColumnLanes = kWarp * kColumnWarps;
template <class Fold, class T, class Load, class Visit>
FX_FN void fold_columns(const OneLane& lanes, int64_t n, int width, const Load& load, const Visit& result) {
  T lane[kFoldLanes][kColumns];
  const auto fold_rows = [&](int64_t begin, int count) {
    for (int l = 0; l < kFoldLanes; ++l) {
      for (int c = 0; c < width; ++c) lane[l][c] = Fold::template identity<T>();
    }
    for (int i = 0; i < count; ++i) {
      T x[kColumns];
      load(begin + i, 0, width, x);
      T* to = lane[i % kFoldLanes];
      for (int c = 0; c < width; ++c) to[c] = Fold::of(to[c], x[c]);
    }
    for (int half = kFoldLanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) {
        for (int c = 0; c < width; ++c) lane[l][c] = Fold::of(lane[l][c], lane[l + half][c]);
      }
    }
  };
  if (n <= kChunk) {
    fold_rows(0, static_cast<int>(n));
    for (int c = 0; c < width; ++c) result(c, lane[0][c]);
    return;
  }
  ChunkFold<Fold, T, OneLane> chunks[kColumns];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    fold_rows(begin, static_cast<int>(smaller(kChunk, n - begin)));
    for (int c = 0; c < width; ++c) chunks[c].add_chunk(lane[0][c]);
  }
  for (int c = 0; c < width; ++c) result(c, chunks[c].result());
  (void)lanes;
}
// fold_columns() on a GPU. The loop folds kWarp columns at a time, and the variable `first` is the
// first of these columns. Each thread has kPerWarp partial results in the array `sums`, and
// transpose() exchanges the partial results between the warps. In thread t of warp w, sums[k] is
// the partial result for one column and one fold lane:
//   before transpose(): column = first + t,                        fold lane = w + k * kColumnWarps
//   after transpose():  column = first + w + k * kColumnWarps,     fold lane = t
// After transpose(), a warp has the partial results of all 32 fold lanes for kPerWarp columns. The
// warp folds the 32 partial results of each column.
template <class Fold, class T, class Lanes, class Load, class Visit>
FX_FN void fold_columns(const Lanes& lanes, int64_t n, int width, const Load& load, const Visit& result) {
  constexpr int kPerWarp = kFoldLanes / kColumnWarps;
  const auto warp = lanes.warp();
  using Chunks = ChunkFold<Fold, T, decltype(lanes.warp())>;
  for (int first = 0; first < width; first += kWarp) {
    Chunks chunks[kPerWarp];
    T folded[kPerWarp];
    for (int64_t begin = 0; begin < n; begin += kChunk) {
      const int64_t end = smaller(begin + kChunk, n);
      T sums[kPerWarp];
      FX_UNROLL
      for (int k = 0; k < kPerWarp; ++k) {
        sums[k] = Fold::template identity<T>();
        const int lane = lanes.warp_index() + k * kColumnWarps;
        for (int64_t row = begin + lane; row < end && first + warp.lane() < width; row += kFoldLanes) {
          T x;
          load(row, first + warp.lane(), 1, &x);
          sums[k] = Fold::of(sums[k], x);
        }
      }
      lanes.transpose(sums);
      FX_UNROLL
      for (int k = 0; k < kPerWarp; ++k) {
        const FoldLanes<Fold, T, false> of_column{sums[k]};
        folded[k] = of_column.fold(warp);
        if (n > kChunk) chunks[k].add_chunk(folded[k]);
      }
    }
    FX_UNROLL
    for (int k = 0; k < kPerWarp; ++k) {
      const int column = first + lanes.warp_index() + k * kColumnWarps;
      T x = n == 0 ? Fold::template identity<T>() : folded[k];
      if (n > kChunk) x = chunks[k].result();
      if (column < width && warp.lane() == 0) result(column, x);
    }
  }
}

// Splits a view into two views. `rest` has the last `inner` dimensions, and `outer` has the
// dimensions before them.
FX_FN void split_view(const FxView& view, int inner, FxView& outer, FxView& rest) {
  outer = rest = view;
  outer.rank = static_cast<uint8_t>(view.rank - inner);
  rest.rank = static_cast<uint8_t>(inner);
  for (int d = 0; d < inner; ++d) {
    rest.size[d] = view.size[outer.rank + d];
    rest.stride[d] = view.stride[outer.rank + d];
  }
}

// The views of a reduction are the result and the operand. The dimensions of the result are the
// kept dimensions. The dimensions of the operand are the kept dimensions, then the reduced
// dimensions. params[0] is the number of reduced dimensions.
//
// An element of the result is the fold of `elements` elements of the operand. These elements are
// divided into chunks of kChunk elements. In phase 0, a unit of work folds one chunk for each of
// kColumns neighbouring results. Phase 1 has work only if there are several chunks. In phase 1, a
// unit of work folds the partial results of all chunks, for kColumns results. The partial result of
// chunk c for result r is at index c * results + r of the workspace.
struct ReductionSizes {
  // `results` is the number of elements of the result, and `tiles` is the number of groups of
  // kColumns results. `elements` is the number of operand elements that are folded into one result,
  // and `chunks` is the number of their chunks.
  int64_t results, elements, tiles, chunks;
  // If true, a CPU core or a warp folds one result at a time. If false, the results of a unit of
  // work are folded side by side. True in two cases:
  // - Neighbouring results do not read contiguous elements.
  // - The elements of a result are contiguous, and there are few results.
  bool is_by_row;
};
FX_FN ReductionSizes reduction_sizes(const FxCall& call) {
  FxView outer, inner;
  split_view(call.views[1], static_cast<int>(call.params[0].integer), outer, inner);
  ReductionSizes sizes;
  sizes.results = num_elements(outer);
  sizes.elements = num_elements(inner);
  sizes.tiles = num_tiles(sizes.results, kColumns);
  sizes.chunks = larger<int64_t>(num_tiles(sizes.elements, kChunk), 1);
  const bool has_wide_rows = outer.rank > 0 && outer.stride[outer.rank - 1] == 1;
  const bool is_row = inner.rank > 0 && inner.stride[inner.rank - 1] == 1 && sizes.results < kColumns / 2;
  sizes.is_by_row = !has_wide_rows || is_row;
  return sizes;
}
FX_FN int64_t reduction_units(const FxCall& call, uint32_t phase) {
  const ReductionSizes sizes = reduction_sizes(call);
  return phase == 0 ? sizes.tiles * sizes.chunks : sizes.chunks > 1 ? sizes.tiles : 0;
}
// Returns the bytes of the partial results in the workspace, or 0 if there is only one chunk. A
// partial result has the type in which the kernel computes (FxCall::compute).
FX_FN int64_t reduction_workspace(const FxCall& call) {
  const ReductionSizes sizes = reduction_sizes(call);
  return sizes.chunks > 1 ? sizes.chunks * sizes.results * (call.compute == FX_COMPUTE_FLOAT ? 4 : 8) : 0;
}
constexpr uint32_t most_of_reduction_lanes = kColumnLanes;
FX_FN uint32_t reduction_lanes(const FxCall& call, uint32_t phase) {
  const ReductionSizes sizes = reduction_sizes(call);
  if (phase == 1 || !sizes.is_by_row) return kColumnLanes;
  return static_cast<uint32_t>(kWarp * larger<int64_t>(1, smaller<int64_t>(sizes.results, kColumnWarps)));
}

template <class Fold, class T, class Lanes>
FX_FN void reduction_unit(const Lanes& lanes, const FxCall& call, uint32_t phase, int64_t unit) {
  const ReductionSizes sizes = reduction_sizes(call);
  T* partial = static_cast<T*>(call.workspace);
  const int64_t chunk = phase == 0 ? unit % sizes.chunks : 0;
  const int64_t first = (phase == 0 ? unit / sizes.chunks : unit) * kColumns;
  const int width = static_cast<int>(smaller<int64_t>(kColumns, sizes.results - first));
  const FxView& result = call.views[0];
  const auto store = [&](int c, T x) {
    if (phase == 0 && sizes.chunks > 1) {
      partial[chunk * sizes.results + first + c] = x;
    } else {
      store_one(result, offset_of(result, first + c), x);
    }
  };
  if (phase == 1) {
    const auto load = [&](int64_t row, int c, int count, T* out) {
      for (int i = 0; i < count; ++i) out[i] = partial[row * sizes.results + first + c + i];
    };
    fold_columns<Fold, T>(lanes, sizes.chunks, width, load, store);
    return;
  }
  FxView outer, inner;
  split_view(call.views[1], static_cast<int>(call.params[0].integer), outer, inner);
  const int64_t begin = chunk * kChunk, n = smaller(kChunk, sizes.elements - begin);
  if (!sizes.is_by_row) {
    const auto load = [&](int64_t row, int c, int count, T* out) {
      load_piece(lanes, outer, offset_of(inner, begin + row), first + c, count, out);
    };
    fold_columns<Fold, T>(lanes, n, width, load, store);
    return;
  }
  for (int c = lanes.warp_index(); c < width; c += lanes.num_warps()) {
    const int64_t offset = offset_of(outer, first + c);
    const auto load = [&](int64_t at, int count, T* out) { load_piece(lanes, inner, offset, begin + at, count, out); };
    const T x = n <= 0 ? Fold::template identity<T>() : fold_chunk<Fold, T>(lanes.warp(), 0, n, load);
    if (lanes.warp().lane() == 0) store(c, x);
  }
}

}  // namespace
}  // namespace fxopt::kernels
