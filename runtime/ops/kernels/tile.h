// Loops over strided elements. A unit of work has a tile of kTile elements, in the order of their
// linear index.
#pragma once

#include "runtime/abi/kernel.h"
#include "runtime/ops/kernels/device.h"
#include "runtime/ops/kernels/dtype.h"

namespace fxopt::kernels {
namespace {

constexpr int kTile = 1024;      // number of elements of a unit of work
constexpr int kTileLanes = 256;  // number of lanes that share a tile, on a device with lanes

FX_FN int64_t num_elements(const FxView& view) {
  int64_t count = 1;
  for (int d = 0; d < view.rank; ++d) count *= view.size[d];
  return count;
}

FX_FN int64_t num_tiles(int64_t elements, int64_t tile = kTile) { return (elements + tile - 1) / tile; }

FX_FN int64_t offset_of(const FxView& view, int64_t linear) {
  int64_t offset = 0;
  for (int d = view.rank - 1; d > 0; --d) {
    offset += linear % view.size[d] * view.stride[d];
    linear /= view.size[d];
  }
  return view.rank == 0 ? 0 : offset + linear * view.stride[0];
}

// Splits the elements [begin, begin + n) into runs with a constant stride. Calls visit(at, offset,
// length) for each run of `length` elements. The first element of the run is element number `begin
// + at` of the view. The offset of this element in memory is `offset`, in elements.
template <class Visit>
FX_FN void for_each_run(const FxView& view, int64_t begin, int64_t n, const Visit& visit) {
  if (view.rank == 0) {
    if (n > 0) visit(int64_t{0}, int64_t{0}, int64_t{1});
    return;
  }
  const int last = view.rank - 1;
  int64_t index[FX_MAX_RANK];
  int64_t rest = begin, offset = 0;
  for (int d = last; d >= 0; --d) {
    index[d] = rest % view.size[d];
    rest /= view.size[d];
    offset += index[d] * view.stride[d];
  }
  for (int64_t at = 0; at < n;) {
    const int64_t length = smaller(n - at, view.size[last] - index[last]);
    if (length <= 0) return;  // a dimension without elements
    visit(at, offset, length);
    at += length;
    index[last] += length;
    offset += length * view.stride[last];
    for (int d = last; d > 0 && index[d] == view.size[d]; --d) {
      offset += view.stride[d - 1] - index[d] * view.stride[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

// The largest number of elements that one lane has in a tile.
template <class Lanes>
constexpr int kOwnOf = kTile / Lanes::kTileLanes;
// Calls visit(i, k) for each element of this lane in a tile of n elements. Element i of the tile is
// element k of the lane, and k is below kOwnOf.
template <class Lanes, class Visit>
FX_FN void for_each_own(const Lanes& lanes, int n, const Visit& visit) {
  if constexpr (Lanes::kIsOne) {
    for (int i = 0; i < n; ++i) visit(i, i);
  } else {
    FX_UNROLL
    for (int k = 0; k < kOwnOf<Lanes>; ++k) {
      const int i = lanes.lane() + k * Lanes::kTileLanes;
      if (i < n) visit(i, k);
    }
  }
}

// Loads this lane's elements of the range [begin, begin + n) of a view. n is at most kTile.
template <class T, class Lanes>
FX_FN void load_tile(const Lanes& lanes, const FxView& view, int64_t begin, int n, T* out) {
  if (view.is_number) {
    const T x = number_as<T>(view.number);
    for_each_own(lanes, n, [&](int, int k) { out[k] = x; });
  } else if constexpr (Lanes::kIsOne) {
    const int64_t stride = view.rank == 0 ? 1 : view.stride[view.rank - 1];
    for_each_run(view, begin, n, [&](int64_t at, int64_t offset, int64_t length) {
      load_run(view.dtype, view.data, offset, stride, length, out + at);
    });
  } else {
    for_each_own(lanes, n, [&](int i, int k) { out[k] = load_one<T>(view, offset_of(view, begin + i)); });
  }
}

template <class T, class Lanes>
FX_FN void store_tile(const Lanes& lanes, const FxView& view, int64_t begin, int n, const T* in) {
  if constexpr (Lanes::kIsOne) {
    const int64_t stride = view.rank == 0 ? 1 : view.stride[view.rank - 1];
    for_each_run(view, begin, n, [&](int64_t at, int64_t offset, int64_t length) {
      store_run(view.dtype, view.data, offset, stride, length, in + at);
    });
  } else {
    for_each_own(lanes, n, [&](int i, int k) { store_one(view, offset_of(view, begin + i), in[k]); });
  }
}

// Loads the elements [begin, begin + n) of a view. `offset` is added to the offset of each element.
// If `Lanes` has several lanes, n must be 1, because each lane loads a single element.
template <class T, class Lanes>
FX_FN void load_piece(const Lanes&, const FxView& view, int64_t offset, int64_t begin, int64_t n, T* out) {
  if (view.is_number) {
    const T x = number_as<T>(view.number);
    for (int64_t i = 0; i < n; ++i) out[i] = x;
  } else if constexpr (Lanes::kIsOne) {
    const int64_t stride = view.rank == 0 ? 1 : view.stride[view.rank - 1];
    for_each_run(view, begin, n, [&](int64_t at, int64_t from, int64_t length) {
      load_run(view.dtype, view.data, offset + from, stride, length, out + at);
    });
  } else {
    *out = load_one<T>(view, offset + offset_of(view, begin));
  }
}

template <class T, class Lanes>
FX_FN void store_piece(const Lanes&, const FxView& view, int64_t offset, int64_t begin, int64_t n, const T* in) {
  if constexpr (Lanes::kIsOne) {
    const int64_t stride = view.rank == 0 ? 1 : view.stride[view.rank - 1];
    for_each_run(view, begin, n, [&](int64_t at, int64_t to, int64_t length) {
      store_run(view.dtype, view.data, offset + to, stride, length, in + at);
    });
  } else {
    store_one(view, offset + offset_of(view, begin), *in);
  }
}

// The largest number of elements that for_each_piece() passes to one call of `visit`. A CPU core is
// a single lane, and each call gets a tile of up to kTile neighbouring elements. On a GPU, several
// lanes share the work, and each call gets one element.
template <class Lanes>
constexpr int kPiece = Lanes::kIsOne ? kTile : 1;
// Calls visit(begin, count) for this lane's elements of [0, n). Each call passes the elements
// [begin, begin + count), and count is at most kPiece.
template <class Lanes, class Visit>
FX_FN void for_each_piece(const Lanes& lanes, int64_t n, const Visit& visit) {
  if constexpr (Lanes::kIsOne) {
    for (int64_t begin = 0; begin < n; begin += kTile)
      visit(begin, static_cast<int>(smaller<int64_t>(kTile, n - begin)));
  } else {
    for (int64_t i = lanes.lane(); i < n; i += lanes.count()) visit(i, 1);
  }
}

FX_FN int64_t result_tiles(const FxCall& call, uint32_t) { return num_tiles(num_elements(call.views[0])); }
// tile_lanes() returns the number of lanes that share a unit of work on a GPU. most_of_tile_lanes
// is the maximum of this number.
constexpr uint32_t most_of_tile_lanes = kTileLanes;
FX_FN uint32_t tile_lanes(const FxCall&, uint32_t) { return kTileLanes; }
FX_FN int64_t no_workspace(const FxCall&) { return 0; }

FX_FN int tile_size(int64_t elements, int64_t unit) {
  return static_cast<int>(smaller<int64_t>(elements - unit * kTile, kTile));
}

// The params of a call, in the type in which its body computes.
template <class T>
struct Params {
  const FxNumber* numbers;
  FX_FN T operator[](int i) const { return number_as<T>(numbers[i]); }
};

}  // namespace
}  // namespace fxopt::kernels
