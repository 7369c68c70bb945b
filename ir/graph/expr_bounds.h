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

// Computes bounds of the expressions in an ExprTable from the ranges of their symbols, by interval
// arithmetic. If all symbols are within their ranges, the result of evaluate() is within the
// bounds. For most tensor sizes, the bounds are exact, because these expressions satisfy two
// conditions:
//   - The operators are +, -, * and //, and every divisor is positive.
//   - If a symbol occurs several times, all its occurrences raise the result when the symbol grows,
//     or all its occurrences lower the result. For example, `s0 + s0 * s1` satisfies this condition
//     if `s1` is at least 0.
//
// For other expressions, the bounds may be too wide. For example, the value of `s0 - s0` is always
// 0, but its bounds contain more numbers. An expression that is not an integer has no bounds. An
// ExprBounds keeps a reference to the table, and computes the bounds of each subexpression once, on
// first use.
class ExprBounds {
 public:
  ExprBounds(const ExprTable& table, const Interner& strings, SymbolRanges ranges)
      : table_(table), strings_(strings), ranges_(std::move(ranges)) {}

  ValueRange operator[](ExprId id);
  ValueRange operator[](const Dim& dim) { return dim.is_static() ? ValueRange::of(dim.value) : (*this)[dim.expr]; }

 private:
  ValueRange of(const Expr& expr) const;  // `bounds_` must have the bounds of all inputs

  const ExprTable& table_;
  const Interner& strings_;
  SymbolRanges ranges_;
  std::unordered_map<ExprId, ValueRange> bounds_;  // looked up, never iterated
};

}  // namespace fxopt
