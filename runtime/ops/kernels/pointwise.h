// Bodies that compute one element of the result from one element of each operand. To add an
// operator of this family, add a struct in this file, a line in bodies.inc and a row in
// ops/rows.cpp.
#pragma once

#include "runtime/ops/kernels/math.h"
#include "runtime/ops/kernels/tile.h"

namespace fxopt::kernels {
namespace {

// Computes a + alpha b.
struct Add {
  static constexpr int kOperands = 2;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>& p) {
    return p[0] == T(1) ? add(x[0], x[1]) : add(x[0], multiply(p[0], x[1]));
  }
};

struct Subtract {
  static constexpr int kOperands = 2;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>& p) {
    return p[0] == T(1) ? subtract(x[0], x[1]) : subtract(x[0], multiply(p[0], x[1]));
  }
};

struct Multiply {
  static constexpr int kOperands = 2;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>&) {
    return multiply(x[0], x[1]);
  }
};

struct LessEqual {
  static constexpr int kOperands = 2;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>&) {
    return T(x[0] <= x[1]);
  }
};

struct Where {
  static constexpr int kOperands = 3;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>&) {
    return x[0] != T(0) ? x[1] : x[2];
  }
};

struct Tanh {
  static constexpr int kOperands = 1;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>&) {
    return hyperbolic_tangent(x[0]);
  }
};

// Computes g (1 - y^2).
struct TanhBackward {
  static constexpr int kOperands = 2;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>&) {
    return x[0] * fma(-x[1], x[1], T(1));
  }
};

// Computes the product g * mask * scale.
struct MaskedScale {
  static constexpr int kOperands = 2;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>& p) {
    return x[0] * x[1] * p[0];
  }
};

// Computes x^p. The exponents 2 and 3 are computed as products. The exponent 0 returns 1 even for a
// NaN, like IEEE pow.
struct Power {
  static constexpr int kOperands = 2;
  template <class T>
  FX_FN static T of(const T* x, const Params<T>&) {
    return power(x[0], x[1]);
  }
};

// Computes one unit of work, which is a tile of kTile elements. All views have the sizes of the
// first result.
template <class T, class Body, class Lanes>
FX_FN void pointwise_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  const FxView& result = call.views[0];
  const int n = tile_size(num_elements(result), unit);
  const int64_t begin = unit * kTile;
  T in[Body::kOperands][kOwnOf<Lanes>], out[kOwnOf<Lanes>];
  FX_UNROLL
  for (int k = 0; k < Body::kOperands; ++k)
    load_tile(lanes, call.views[call.num_results + static_cast<uint32_t>(k)], begin, n, in[k]);
  const Params<T> params{call.params};
  for_each_own(lanes, n, [&](int, int i) {
    T x[Body::kOperands];
    FX_UNROLL
    for (int k = 0; k < Body::kOperands; ++k) x[k] = in[k][i];
    out[i] = Body::template of<T>(x, params);
  });
  store_tile(lanes, result, begin, n, out);
}

}  // namespace
}  // namespace fxopt::kernels
