// Softmax and norms. A unit of work computes one row. A row of a view consists of the last
// params[0] dimensions of the view. Sums have the order that reduce.h defines.
#pragma once

#include "runtime/ops/kernels/reduce.h"

namespace fxopt::kernels {
namespace {

// One row of a view. `at` is the offset of the first element of the row.
template <class Lanes>
struct Row {
  Lanes lanes;
  FxView view;
  int64_t at = 0;
  int64_t n = 0;

  FX_FN Row(const Lanes& who, const FxView& whole, int inner, int64_t row) : lanes(who) {
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
    load_piece(lanes, view, at, begin, count, out);
  }
  template <class T>
  FX_FN void store(int64_t begin, int count, const T* in) const {
    store_piece(lanes, view, at, begin, count, in);
  }
};

FX_FN int row_rank(const FxCall& call) { return static_cast<int>(call.params[0].integer); }
FX_FN int64_t num_rows(const FxView& view, int inner) {
  FxView outer, rest;
  split_view(view, inner, outer, rest);
  return num_elements(outer);
}
FX_FN int64_t row_size(const FxView& view, int inner) {
  FxView outer, rest;
  split_view(view, inner, outer, rest);
  return num_elements(rest);
}
FX_FN int64_t row_units(const FxCall& call, uint32_t) { return num_rows(call.views[0], row_rank(call)); }
constexpr uint32_t most_of_row_lanes = kMostFoldLanes;
FX_FN uint32_t row_lanes(const FxCall& call, uint32_t) { return fold_lanes(row_size(call.views[0], row_rank(call))); }

// Computes the softmax of a row, or the logarithm of the softmax if kIsLog is true:
//   softmax:              exp(x - max) / sum
//   logarithm of softmax: x - max - log(sum)
// Here, max is the largest x of the row, and sum is the sum of exp(x - max) over the row.
template <class T, bool kIsLog, class Lanes>
FX_FN void softmax_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const Row result(lanes, call.views[0], inner, unit), x(lanes, call.views[1], inner, unit);
  const T most = fold_all<MaxFold, T>(lanes, x.n, [&](int64_t begin, int count, T* out) { x.load(begin, count, out); });
  const T sum = fold_all<SumFold, T>(lanes, x.n, [&](int64_t begin, int count, T* out) {
    x.load(begin, count, out);
    for (int i = 0; i < count; ++i) out[i] = exponential(out[i] - most);
  });
  const T log_sum = kIsLog ? logarithm(sum) : T(0);
  for_each_piece(lanes, x.n, [&](int64_t begin, int count) {
    T y[kPiece<Lanes>];
    x.load(begin, count, y);
    if constexpr (kIsLog) {
      for (int i = 0; i < count; ++i) y[i] = (y[i] - most) - log_sum;
    } else {
      for (int i = 0; i < count; ++i) y[i] = exponential(y[i] - most) / sum;
    }
    result.store(begin, count, y);
  });
}

// Computes y * (g - sum(g * y)), or g - exp(y) * sum(g) if kIsLog is true. The operand g is the
// gradient of the forward operator's result, and the operand y is the forward operator's result.
// sum() is the sum over a row.
template <class T, bool kIsLog, class Lanes>
FX_FN void softmax_backward_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const Row result(lanes, call.views[0], inner, unit), g(lanes, call.views[1], inner, unit);
  const Row y(lanes, call.views[2], inner, unit);
  const T sum = fold_all<SumFold, T>(lanes, g.n, [&](int64_t begin, int count, T* out) {
    g.load(begin, count, out);
    if constexpr (!kIsLog) {
      T b[kPiece<Lanes>];
      y.load(begin, count, b);
      for (int i = 0; i < count; ++i) out[i] *= b[i];
    }
  });
  for_each_piece(lanes, g.n, [&](int64_t begin, int count) {
    T a[kPiece<Lanes>], b[kPiece<Lanes>];
    g.load(begin, count, a);
    y.load(begin, count, b);
    for (int i = 0; i < count; ++i) a[i] = kIsLog ? fma(-exponential(b[i]), sum, a[i]) : b[i] * (a[i] - sum);
    result.store(begin, count, a);
  });
}

// The results y, mean and rstd are the first views. The operands x, weight and bias follow.
// params[0] is the number of dimensions that a row spans, and params[1] is eps.
//   y = (x - mean) * rstd * weight + bias
//   rstd = 1 / sqrt(variance + eps)
template <class T, class Lanes>
FX_FN void layer_norm_unit(const Lanes& lanes, const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const Row y(lanes, call.views[0], inner, unit), x(lanes, call.views[3], inner, unit);
  const Row w(lanes, call.views[4], inner, 0), b(lanes, call.views[5], inner, 0);
  const T n = static_cast<T>(x.n);
  const auto load_x = [&](int64_t begin, int count, T* out) { x.load(begin, count, out); };
  const T mean = fold_all<SumFold, T>(lanes, x.n, load_x) / n;
  const auto load_square = [&](int64_t begin, int count, T* out) {
    x.load(begin, count, out);
    for (int i = 0; i < count; ++i) out[i] = (out[i] - mean) * (out[i] - mean);
  };
  const T variance = fold_all<SumFold, T>(lanes, x.n, load_square) / n;
  const T rstd = T(1) / square_root(variance + number_as<T>(call.params[1]));
  for_each_piece(lanes, x.n, [&](int64_t begin, int count) {
    T a[kPiece<Lanes>], scale[kPiece<Lanes>], shift[kPiece<Lanes>];
    x.load(begin, count, a);
    w.load(begin, count, scale);
    b.load(begin, count, shift);
    for (int i = 0; i < count; ++i) a[i] = fma((a[i] - mean) * rstd, scale[i], shift[i]);
    y.store(begin, count, a);
  });
  const FxView& means = call.views[1];
  const FxView& rstds = call.views[2];
  if (lanes.lane() != 0) return;
  if (means.data != nullptr) store_one(means, offset_of(means, unit), mean);
  if (rstds.data != nullptr) store_one(rstds, offset_of(rstds, unit), rstd);
}

// The results dx, dw and db are the first views. The operands g, x, mean, rstd and weight follow.
// If a result is not requested, its view has no data. params[0] is the number of dimensions that a
// row spans.
//
// In phase 0, a unit of work computes one row of dx. In phase 1, a unit of work computes kColumns
// elements of dw and of db.
//   h  = (x - mean) * rstd
//   dx = rstd * (g * weight - average(g * weight) - h * average(g * weight * h))
//   dw = sum(g * h)
//   db = sum(g)
// Here, average() is the average over the elements of a row, and sum() is the sum over all rows.
FX_FN int64_t layer_norm_backward_units(const FxCall& call, uint32_t phase) {
  const FxView& g = call.views[3];
  const int inner = row_rank(call);
  if (phase == 0) return call.views[0].data == nullptr ? 0 : num_rows(g, inner);
  const bool is_asked = call.views[1].data != nullptr || call.views[2].data != nullptr;
  return is_asked ? num_tiles(row_size(g, inner), kColumns) : 0;
}
constexpr uint32_t most_of_layer_norm_backward_lanes = kColumnLanes;
FX_FN uint32_t layer_norm_backward_lanes(const FxCall& call, uint32_t phase) {
  return phase == 0 ? fold_lanes(row_size(call.views[3], row_rank(call))) : kColumnLanes;
}

template <class T, class Lanes>
FX_FN void layer_norm_backward_row(const Lanes& lanes, const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const Row dx(lanes, call.views[0], inner, unit), g(lanes, call.views[3], inner, unit);
  const Row x(lanes, call.views[4], inner, unit), w(lanes, call.views[7], inner, 0);
  const T mean = load_one<T>(call.views[5], offset_of(call.views[5], unit));
  const T rstd = load_one<T>(call.views[6], offset_of(call.views[6], unit));
  const T n = static_cast<T>(x.n);
  const auto load_gw = [&](int64_t begin, int count, T* out) {
    T scale[kPiece<Lanes>];
    g.load(begin, count, out);
    w.load(begin, count, scale);
    for (int i = 0; i < count; ++i) out[i] *= scale[i];
  };
  const auto load_h = [&](int64_t begin, int count, T* out) {
    x.load(begin, count, out);
    for (int i = 0; i < count; ++i) out[i] = (out[i] - mean) * rstd;
  };
  const auto load_gwh = [&](int64_t begin, int count, T* out) {
    T h[kPiece<Lanes>];
    load_gw(begin, count, out);
    load_h(begin, count, h);
    for (int i = 0; i < count; ++i) out[i] *= h[i];
  };
  const T first = fold_all<SumFold, T>(lanes, x.n, load_gw) / n;
  const T second = fold_all<SumFold, T>(lanes, x.n, load_gwh) / n;
  for_each_piece(lanes, x.n, [&](int64_t begin, int count) {
    T a[kPiece<Lanes>], h[kPiece<Lanes>];
    load_gw(begin, count, a);
    load_h(begin, count, h);
    for (int i = 0; i < count; ++i) a[i] = rstd * fma(-h[i], second, a[i] - first);
    dx.store(begin, count, a);
  });
}

template <class T, class Lanes>
FX_FN void layer_norm_backward_columns(const Lanes& lanes, const FxCall& call, int64_t unit) {
  const int inner = row_rank(call);
  const FxView& mean = call.views[5];
  const FxView& rstd = call.views[6];
  const int64_t rows = num_rows(call.views[3], inner), begin = unit * kColumns;
  const int width = static_cast<int>(smaller<int64_t>(kColumns, row_size(call.views[3], inner) - begin));
  const auto load_g = [&](int64_t row, int c, int count, T* out) {
    Row(lanes, call.views[3], inner, row).load(begin + c, count, out);
  };
  const auto load_gh = [&](int64_t row, int c, int count, T* out) {
    T x[Lanes::kIsOne ? kColumns : 1];
    const T center = load_one<T>(mean, offset_of(mean, row)), scale = load_one<T>(rstd, offset_of(rstd, row));
    load_g(row, c, count, out);
    Row(lanes, call.views[4], inner, row).load(begin + c, count, x);
    for (int i = 0; i < count; ++i) out[i] *= (x[i] - center) * scale;
  };
  for (int i = 1; i <= 2; ++i) {
    const FxView& result = call.views[i];
    if (result.data == nullptr) continue;
    const auto store = [&](int c, T x) { store_one(result, offset_of(result, begin + c), x); };
    if (i == 1) {
      fold_columns<SumFold, T>(lanes, rows, width, load_gh, store);
    } else {
      fold_columns<SumFold, T>(lanes, rows, width, load_g, store);
    }
  }
}
template <class T, class Lanes>
FX_FN void layer_norm_backward_unit(const Lanes& lanes, const FxCall& call, uint32_t phase, int64_t unit) {
  if (phase == 0) {
    layer_norm_backward_row<T>(lanes, call, unit);
  } else {
    layer_norm_backward_columns<T>(lanes, call, unit);
  }
}

}  // namespace
}  // namespace fxopt::kernels
