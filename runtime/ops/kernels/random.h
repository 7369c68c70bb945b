// Counter-based random numbers: Philox 4x32-10. The source is Salmon, Moraes, Dror, Shaw, "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011. For a key and a counter, Philox returns four words
// of 32 bits. On every device, element i of a random tensor uses this word:
//   word i % 4 for the key `seed` and the counter (i / 4, slot)
// i / 4 is rounded down. `slot` distinguishes calls with the same seed (FxDrawState).
#pragma once

#include "runtime/ops/kernels/tile.h"

namespace fxopt::kernels {
namespace {

FX_FN void philox(uint64_t seed, uint64_t high, uint64_t low, uint32_t* out) {
  uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
  uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

// Returns a multiple of 2^-24 in [0, 1).
FX_FN float uniform_of(uint32_t word) { return static_cast<float>(word >> 8) * 5.9604644775390625e-8f; }

// The views of dropout are the result and the mask, then the operand x. If the caller gives a mask
// instead of random numbers, this mask is the second operand. The params are the probability p and
// whether the model is training.
//
// In training, the result is x * mask / (1 - p), or x * 0 if p is 1. A random mask is false with
// probability p for each element. If the model is not training, the result is x, and a mask that
// the caller does not give is true for all elements.
template <class T, class Lanes>
FX_FN void dropout_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  T x[kOwnOf<Lanes>], mask[kOwnOf<Lanes>];
  const int n = tile_size(num_elements(call.views[0]), unit);
  load_tile(lanes, call.views[2], unit * kTile, n, x);
  const double p = number_as<double>(call.params[0]);
  const bool is_training = call.params[1].integer != 0;
  const T scale = static_cast<T>(p == 1 ? 0 : 1 / (1 - p));
  const bool is_given = call.num_operands == 2;
  if (is_given) load_tile(lanes, call.views[3], unit * kTile, n, mask);
  uint32_t words[4];
  int64_t known = -1;
  for_each_own(lanes, n, [&](int i, int k) {
    const int64_t element = unit * kTile + i;
    if (is_training && !is_given && element / 4 != known) {
      known = element / 4;
      philox(call.draw.seed, call.draw.slot, static_cast<uint64_t>(known), words);
    }
    if (!is_given) mask[k] = T(!is_training || uniform_of(words[element % 4]) >= p);
    if (is_training) x[k] = x[k] * mask[k] * scale;
  });
  store_tile(lanes, call.views[0], unit * kTile, n, x);
  store_tile(lanes, call.views[1], unit * kTile, n, mask);
}

}  // namespace
}  // namespace fxopt::kernels
