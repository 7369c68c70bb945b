#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>

#include "ir/graph/expr.h"

namespace fxopt {

// All integers from `min` to `max`, both included. The ends of int64_t stand for what is smaller or larger than they
// are, or has no bound.
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

// What symbols range over. One that is missing may be any integer.
using SymbolRanges = std::unordered_map<StringId, ValueRange>;

// Bounds of every expression of a table while its symbols range over what is given: each value that evaluate() has for
// symbols in their ranges lies within. By interval arithmetic, so the ends are reached where no symbol pulls both ways,
// as sizes of tensors mostly are; `s0 - s0` is known to lie around 0 and no better. What has no integer meaning may be
// anything. Refers to the table. Each part of an expression is bounded once, when it is first asked about.
class ExprBounds {
 public:
  ExprBounds(const ExprTable& table, const Interner& strings, SymbolRanges ranges)
      : table_(table), strings_(strings), ranges_(std::move(ranges)) {}

  ValueRange operator[](ExprId id);
  ValueRange operator[](const Dim& dim) { return dim.is_static() ? ValueRange::of(dim.value) : (*this)[dim.expr]; }

 private:
  ValueRange of(const Expr& expr) const;  // its inputs are bounded

  const ExprTable& table_;
  const Interner& strings_;
  SymbolRanges ranges_;
  std::unordered_map<ExprId, ValueRange> bounds_;  // looked up, never iterated
};

}  // namespace fxopt
