// Bodies of the kernels that move or convert elements, or write numbers: copy, cat, slice_backward,
// fill and iota.
#pragma once

#include "runtime/ops/kernels/tile.h"

namespace fxopt::kernels {
namespace {

template <class T, class Lanes>
FX_FN void copy_tile(const Lanes& lanes, const FxView& to, const FxView& from, int64_t unit) {
  T x[kOwnOf<Lanes>];
  const int n = tile_size(num_elements(to), unit);
  load_tile(lanes, from, unit * kTile, n, x);
  store_tile(lanes, to, unit * kTile, n, x);
}

// The kernel `cat` gets these tensor views: first a slice of the result for each operand, then the
// operands. Each operand is copied to its slice.
FX_FN int64_t cat_units(const FxCall& call, uint32_t) {
  int64_t units = 0;
  for (uint32_t i = 0; i < call.num_operands; ++i) units += num_tiles(num_elements(call.views[i]));
  return units;
}
template <class T, class Lanes>
FX_FN void cat_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  for (uint32_t i = 0; i < call.num_operands; ++i) {
    const int64_t tiles = num_tiles(num_elements(call.views[i]));
    if (unit < tiles) return copy_tile<T>(lanes, call.views[i], call.views[call.num_results + i], unit);
    unit -= tiles;
  }
}

template <class T, class Lanes>
FX_FN void fill_tile(const Lanes& lanes, const FxView& to, T x, int64_t unit) {
  T all[kOwnOf<Lanes>];
  FX_UNROLL
  for (T& each : all) each = x;
  store_tile(lanes, to, unit * kTile, tile_size(num_elements(to), unit), all);
}

// Views of the kernel `slice_backward`: the result, the slice of the result that the operand fills,
// and the operand. Phase 0 writes zeros to the result. Phase 1 copies the operand to the slice.
FX_FN int64_t slice_backward_units(const FxCall& call, uint32_t phase) {
  return num_tiles(num_elements(call.views[phase]));
}
template <class T, class Lanes>
FX_FN void slice_backward_unit(const Lanes& lanes, const FxCall& call, uint32_t phase, int64_t unit) {
  if (phase == 0) return fill_tile(lanes, call.views[0], T(0), unit);
  copy_tile<T>(lanes, call.views[1], call.views[2], unit);
}

// Fills a tile of elements with the number params[0].
template <class T, class Lanes>
FX_FN void fill_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  fill_tile(lanes, call.views[0], number_as<T>(call.params[0]), unit);
}

// The params of the kernel `iota` are `start` and `step`. Element i is start + i * step, which is
// rounded once before it is stored.
template <class T, class Lanes>
FX_FN void iota_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  T x[kOwnOf<Lanes>];
  const T start = number_as<T>(call.params[0]), step = number_as<T>(call.params[1]);
  const int n = tile_size(num_elements(call.views[0]), unit);
  for_each_own(lanes, n, [&](int i, int k) { x[k] = multiply_add(static_cast<T>(unit * kTile + i), step, start); });
  store_tile(lanes, call.views[0], unit * kTile, n, x);
}

}  // namespace
}  // namespace fxopt::kernels
