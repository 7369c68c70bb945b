// Walks over strided elements: a unit has a tile of them, in the order of their linear index.
#pragma once

#include "runtime/abi/kernel.h"
#include "runtime/ops/kernels/device.h"
#include "runtime/ops/kernels/dtype.h"

namespace fxopt::kernels {
namespace {

constexpr int kTile = 1024;  // elements of a unit

FX_FN int64_t num_elements(const FxView& view) {
  int64_t count = 1;
  for (int d = 0; d < view.rank; ++d) count *= view.size[d];
  return count;
}

FX_FN int64_t num_tiles(int64_t elements, int64_t tile = kTile) { return (elements + tile - 1) / tile; }

FX_FN int64_t offset_of(const FxView& view, int64_t linear) {
  int64_t offset = 0;
  for (int d = view.rank - 1; d >= 0; --d) {
    offset += linear % view.size[d] * view.stride[d];
    linear /= view.size[d];
  }
  return offset;
}

// Calls visit(at, offset, length) for the pieces of elements [begin, begin + n) that lie a stride apart.
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

// Elements [begin, begin + n) of a view, n at most kTile: those of this lane, one after the other.
template <class T, class Lanes>
FX_FN void load_tile(const Lanes& lanes, const FxView& view, int64_t begin, int n, T* out) {
  if (view.is_number) {
    const T x = number_as<T>(view.number);
    for (int i = lanes.lane(), k = 0; i < n; i += Lanes::kCount, ++k) out[k] = x;
  } else if constexpr (Lanes::kCount == 1) {
    const int64_t stride = view.rank == 0 ? 1 : view.stride[view.rank - 1];
    for_each_run(view, begin, n, [&](int64_t at, int64_t offset, int64_t length) {
      load_run(view.dtype, view.data, offset, stride, length, out + at);
    });
  } else {
    for (int i = lanes.lane(), k = 0; i < n; i += Lanes::kCount, ++k)
      out[k] = load_one<T>(view, offset_of(view, begin + i));
  }
}

template <class T, class Lanes>
FX_FN void store_tile(const Lanes& lanes, const FxView& view, int64_t begin, int n, const T* in) {
  if constexpr (Lanes::kCount == 1) {
    const int64_t stride = view.rank == 0 ? 1 : view.stride[view.rank - 1];
    for_each_run(view, begin, n, [&](int64_t at, int64_t offset, int64_t length) {
      store_run(view.dtype, view.data, offset, stride, length, in + at);
    });
  } else {
    for (int i = lanes.lane(), k = 0; i < n; i += Lanes::kCount, ++k)
      store_one(view, offset_of(view, begin + i), in[k]);
  }
}

FX_FN int tile_size(int64_t elements, int64_t unit) {
  return static_cast<int>(smaller<int64_t>(elements - unit * kTile, kTile));
}

// The numbers of a call, in the type that its body computes in.
template <class T>
struct Params {
  const FxNumber* numbers;
  FX_FN T operator[](int i) const { return number_as<T>(numbers[i]); }
};

}  // namespace
}  // namespace fxopt::kernels
