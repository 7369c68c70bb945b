// Softmax and norms: a unit has one row, the elements of the last params[0] dimensions of each view. Sums are those of reduce.h.
#pragma once

#include "runtime/ops/kernels/reduce.h"

namespace fxopt::kernels {
namespace {

// One row of a view: `at` is the offset of its first element.
struct Row {
  FxView view;
  int64_t at = 0;
  int64_t n = 0;

  FX_FN Row(const FxView& whole, int inner, int64_t row) {
    FxView outer;
    if (whole.is_number) {
      view = whole;
      return;
    }
    split_view(whole, inner, outer, view);
    at = offset_of(outer, row);
    n = num_elements(view);
  }
  template <class T>
  FX_FN void load(int64_t begin, int count, T* out) const {
    load_from(view, at, begin, count, out);
  }
  template <class T>
  FX_FN void store(int64_t begin, int count, const T* in) const {
    store_to(view, at, begin, count, in);
  }
};

FX_FN int row_rank(const FxCall& call) { return static_cast<int>(call.params[0].integer); }
FX_FN int64_t num_rows(const FxView& view, int inner) {
  FxView outer, rest;
  split_view(view, inner, outer, rest);
  return num_elements(outer);
}
FX_FN int64_t row_units(const FxCall& call, uint32_t) { return num_rows(call.views[0], row_rank(call)); }

// Calls visit(begin, count) for the tiles of a row.
template <class Visit>
FX_FN void for_each_tile(int64_t n, const Visit& visit) {
  for (int64_t begin = 0; begin < n; begin += kTile) visit(begin, static_cast<int>(smaller<int64_t>(kTile, n - begin)));
}

// exp(x - max) / sum, or x - max - log(sum).
template <class T, bool kIsLog>
FX_FN void softmax_unit(const FxCall& call, int64_t unit) {
  const Row result(call.views[0], row_rank(call), unit), x(call.views[1], row_rank(call), unit);
  const T most = fold_all<MaxFold, T>(x.n, [&](int64_t begin, int count, T* out) { x.load(begin, count, out); });
  const T sum = fold_all<SumFold, T>(x.n, [&](int64_t begin, int count, T* out) {
    x.load(begin, count, out);
    for (int i = 0; i < count; ++i) out[i] = exponential(out[i] - most);
  });
  const T log_sum = kIsLog ? logarithm(sum) : T(0);
  for_each_tile(x.n, [&](int64_t begin, int count) {
    T y[kTile];
    x.load(begin, count, y);
    if constexpr (kIsLog) {
      for (int i = 0; i < count; ++i) y[i] = (y[i] - most) - log_sum;
    } else {
      for (int i = 0; i < count; ++i) y[i] = exponential(y[i] - most) / sum;
    }
    result.store(begin, count, y);
  });
}

// Of y: y (g - sum(g y)), or g - exp(y) sum(g).
template <class T, bool kIsLog>
FX_FN void softmax_backward_unit(const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const Row result(call.views[0], inner, unit), g(call.views[1], inner, unit), y(call.views[2], inner, unit);
  const T sum = fold_all<SumFold, T>(g.n, [&](int64_t begin, int count, T* out) {
    g.load(begin, count, out);
    if constexpr (!kIsLog) {
      T b[kTile];
      y.load(begin, count, b);
      for (int i = 0; i < count; ++i) out[i] *= b[i];
    }
  });
  for_each_tile(g.n, [&](int64_t begin, int count) {
    T a[kTile], b[kTile];
    g.load(begin, count, a);
    y.load(begin, count, b);
    for (int i = 0; i < count; ++i) a[i] = kIsLog ? fma(-exponential(b[i]), sum, a[i]) : b[i] * (a[i] - sum);
    result.store(begin, count, a);
  });
}

// Views: y, mean, rstd; x, weight, bias. params: dimensions of a row, eps. y = (x - mean) rstd w + b.
template <class T>
FX_FN void layer_norm_unit(const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const Row y(call.views[0], inner, unit), x(call.views[3], inner, unit);
  const Row w(call.views[4], inner, 0), b(call.views[5], inner, 0);
  const T n = static_cast<T>(x.n);
  const T mean = fold_all<SumFold, T>(x.n, [&](int64_t begin, int count, T* out) { x.load(begin, count, out); }) / n;
  const T variance = fold_all<SumFold, T>(x.n,
                                          [&](int64_t begin, int count, T* out) {
                                            x.load(begin, count, out);
                                            for (int i = 0; i < count; ++i) out[i] = (out[i] - mean) * (out[i] - mean);
                                          }) /
                     n;
  const T rstd = T(1) / square_root(variance + number_as<T>(call.params[1]));
  for_each_tile(x.n, [&](int64_t begin, int count) {
    T a[kTile], scale[kTile], shift[kTile];
    x.load(begin, count, a);
    w.load(begin, count, scale);
    b.load(begin, count, shift);
    for (int i = 0; i < count; ++i) a[i] = fma((a[i] - mean) * rstd, scale[i], shift[i]);
    y.store(begin, count, a);
  });
  const FxView& means = call.views[1];
  const FxView& rstds = call.views[2];
  if (means.data != nullptr) store_one(means, offset_of(means, unit), mean);
  if (rstds.data != nullptr) store_one(rstds, offset_of(rstds, unit), rstd);
}

// Views: dx, dw, db, of which some are not asked for (no data); g, x, mean, rstd, weight. params: dimensions of a row.
//
// Phase 0, a row each: dx = rstd (g w - mean(g w) - h mean(g w h)), h = (x - mean) rstd. Phase 1, kColumns elements of a row each:
// dw = sum(g h) and db = sum(g) over all rows.
FX_FN int64_t layer_norm_backward_units(const FxCall& call, uint32_t phase) {
  const FxView& g = call.views[3];
  const int inner = row_rank(call);
  const int64_t rows = num_rows(g, inner);
  if (phase == 0) return call.views[0].data == nullptr ? 0 : rows;
  FxView outer, row;
  split_view(g, inner, outer, row);
  return call.views[1].data == nullptr && call.views[2].data == nullptr ? 0 : num_tiles(num_elements(row), kColumns);
}

template <class T>
FX_FN void layer_norm_backward_row(const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const Row dx(call.views[0], inner, unit), g(call.views[3], inner, unit), x(call.views[4], inner, unit);
  const Row w(call.views[7], inner, 0);
  const T mean = load_one<T>(call.views[5], offset_of(call.views[5], unit));
  const T rstd = load_one<T>(call.views[6], offset_of(call.views[6], unit));
  const T n = static_cast<T>(x.n);
  const auto load_gw = [&](int64_t begin, int count, T* out) {
    T scale[kTile];
    g.load(begin, count, out);
    w.load(begin, count, scale);
    for (int i = 0; i < count; ++i) out[i] *= scale[i];
  };
  const auto load_h = [&](int64_t begin, int count, T* out) {
    x.load(begin, count, out);
    for (int i = 0; i < count; ++i) out[i] = (out[i] - mean) * rstd;
  };
  const T first = fold_all<SumFold, T>(x.n, load_gw) / n;
  const T second = fold_all<SumFold, T>(x.n,
                                        [&](int64_t begin, int count, T* out) {
                                          T h[kTile];
                                          load_gw(begin, count, out);
                                          load_h(begin, count, h);
                                          for (int i = 0; i < count; ++i) out[i] *= h[i];
                                        }) /
                   n;
  for_each_tile(x.n, [&](int64_t begin, int count) {
    T a[kTile], h[kTile];
    load_gw(begin, count, a);
    load_h(begin, count, h);
    for (int i = 0; i < count; ++i) a[i] = rstd * fma(-h[i], second, a[i] - first);
    dx.store(begin, count, a);
  });
}

template <class T>
FX_FN void layer_norm_backward_columns(const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const int64_t rows = num_rows(call.views[3], inner), begin = unit * kColumns;
  const int64_t n = Row(call.views[3], inner, 0).n;
  const int width = static_cast<int>(smaller<int64_t>(kColumns, n - begin));
  const auto load_g = [&](int64_t row, T* out) { Row(call.views[3], inner, row).load(begin, width, out); };
  T sums[kColumns];
  if (call.views[1].data != nullptr) {
    fold_columns<SumFold, T>(
        rows, width,
        [&](int64_t row, T* out) {
          T x[kColumns];
          const T mean = load_one<T>(call.views[5], offset_of(call.views[5], row));
          const T rstd = load_one<T>(call.views[6], offset_of(call.views[6], row));
          load_g(row, out);
          Row(call.views[4], inner, row).load(begin, width, x);
          for (int c = 0; c < width; ++c) out[c] *= (x[c] - mean) * rstd;
        },
        sums);
    store_to(call.views[1], 0, begin, width, sums);
  }
  if (call.views[2].data != nullptr) {
    fold_columns<SumFold, T>(rows, width, load_g, sums);
    store_to(call.views[2], 0, begin, width, sums);
  }
}

}  // namespace
}  // namespace fxopt::kernels
