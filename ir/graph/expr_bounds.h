#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>

#include "ir/graph/expr.h"

namespace fxopt {

// All integers from `min` to `max`, both included. The smallest int64_t as `min` means no lower
// bound, and the largest int64_t as `max` means no upper bound.
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

// The ranges of symbols. A symbol without a range may be any integer.
using SymbolRanges = std::unordered_map<StringId, ValueRange>;

// Computes bounds of the expressions of a table whose symbols are in the given ranges. Each value
// that evaluate() returns is within the bounds. The bounds come from interval arithmetic. They are
// exact if no symbol both raises and lowers the value, as in most sizes of tensors. For `s0 - s0`,
// the bounds contain 0 but are wider. An expression that is not an integer has no bounds. The
// object refers to the table. It computes the bounds of each subexpression once, on first use.
class ExprBounds {
 public:
  ExprBounds(const ExprTable& table, const Interner& strings, SymbolRanges ranges)
      : table_(table), strings_(strings), ranges_(std::move(ranges)) {}

  ValueRange operator[](ExprId id);
  ValueRange operator[](const Dim& dim) { return dim.is_static() ? ValueRange::of(dim.value) : (*this)[dim.expr]; }

 private:
  ValueRange of(const Expr& expr) const;  // the bounds of its inputs are already computed

  const ExprTable& table_;
  const Interner& strings_;
  SymbolRanges ranges_;
  std::unordered_map<ExprId, ValueRange> bounds_;  // looked up, never iterated
};

}  // namespace fxopt
