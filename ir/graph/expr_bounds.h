#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>

#include "ir/graph/expr.h"

namespace fxopt {

// All integers from `min` to `max`, both included. The ends of int64_t stand for all integers
// beyond them, and for no bound.
struct ValueRange {
  static constexpr int64_t kNoMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kNoMax = std::numeric_limits<int64_t>::max();

  int64_t min = kNoMin;
  int64_t max = kNoMax;

  static ValueRange of(int64_t value) { return {value, value}; }
  bool has_min() const { return min != kNoMin; }
  bool has_max() const { return max != kNoMax; }
  bool is_one() const { return min == max; }
  bool operator==(const ValueRange&) const = default;
};

ValueRange operator+(ValueRange a, ValueRange b);
ValueRange operator-(ValueRange a, ValueRange b);
ValueRange operator*(ValueRange a, ValueRange b);

// The ranges of symbols. A missing symbol may be any integer.
using SymbolRanges = std::unordered_map<StringId, ValueRange>;

// Bounds of every expression of a table while its symbols are in the given ranges: each value that
// evaluate() returns is within the bounds. Uses interval arithmetic, so the ends are reached if no
// symbol pulls both ways, as in most sizes of tensors. For `s0 - s0` the bounds merely contain 0.
// An expression without an integer meaning may be anything. Refers to the table. Bounds each
// subexpression once, on first use.
class ExprBounds {
 public:
  ExprBounds(const ExprTable& table, const Interner& strings, SymbolRanges ranges)
      : table_(table), strings_(strings), ranges_(std::move(ranges)) {}

  ValueRange operator[](ExprId id);
  ValueRange operator[](const Dim& dim) { return dim.is_static() ? ValueRange::of(dim.value) : (*this)[dim.expr]; }

 private:
  ValueRange of(const Expr& expr) const;  // its inputs are bounded already

  const ExprTable& table_;
  const Interner& strings_;
  SymbolRanges ranges_;
  std::unordered_map<ExprId, ValueRange> bounds_;  // looked up, never iterated
};

}  // namespace fxopt
