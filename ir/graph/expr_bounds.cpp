#include "ir/graph/expr_bounds.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "core/saturate.h"

namespace fxopt {
namespace {

using Bounds = std::span<const ValueRange>;

constexpr ValueRange kAnyValue{};
constexpr ValueRange kTruth{0, 1};

// Convert a wide integer to an end of a range. As a lower end, kNoMax is a number and kNoMin means
// no bound. As an upper end, kNoMin is a number and kNoMax means no bound.
int64_t lower_end(WideSum value) {
  if (value >= ValueRange::kNoMax) return ValueRange::kNoMax;
  return value <= -WideSum{ValueRange::kNoMax} ? ValueRange::kNoMin : static_cast<int64_t>(value);
}

int64_t upper_end(WideSum value) {
  if (value >= ValueRange::kNoMax) return ValueRange::kNoMax;
  return value <= ValueRange::kNoMin ? ValueRange::kNoMin : static_cast<int64_t>(value);
}

ValueRange negated(ValueRange a) { return {lower_end(-WideSum{a.max}), upper_end(-WideSum{a.min})}; }

ValueRange joined(ValueRange a, ValueRange b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

// A division by 0 has no value, so 0 is excluded from `b`.
ValueRange floor_divide(ValueRange a, ValueRange b) {
  if (b.max < 0) return floor_divide(negated(a), negated(b));
  if (b.min < 0 || b.max == 0) return kAnyValue;
  b.min = std::max<int64_t>(b.min, 1);
  const auto quotient = [](int64_t x, int64_t y) { return x / y - (x % y < 0 ? 1 : 0); };
  return {a.has_min() ? std::min(quotient(a.min, b.min), quotient(a.min, b.max)) : a.min,
          a.has_max() ? std::max(quotient(a.max, b.min), quotient(a.max, b.max)) : a.max};
}

// Python's modulo: the sign is the divisor's.
ValueRange modulo(ValueRange a, ValueRange b) {
  if (b.min < 0 || b.max == 0) return kAnyValue;
  if (a.min >= 0 && a.max < std::max<int64_t>(b.min, 1)) return a;
  const int64_t largest = b.has_max() ? b.max - 1 : b.max;
  return {0, a.min >= 0 ? std::min(a.max, largest) : largest};
}

// Bounds are known only for operands of at least 0. The power grows with both operands, except that
// 0 ** 0 is 1.
ValueRange power(ValueRange a, ValueRange b) {
  if (a.min < 0 || b.min < 0) return kAnyValue;
  const auto end = [](int64_t base, int64_t exponent) {
    if (base <= 1) return WideSum{exponent == 0 ? 1 : base};
    WideSum result = 1;
    for (int64_t i = 0; i < exponent && result < ValueRange::kNoMax; ++i) result *= base;
    return result;
  };
  const bool has_zeros = a.min == 0 && b.min == 0;
  return {has_zeros ? 0 : lower_end(end(a.min, b.min)), upper_end(std::max(end(a.max, b.max), WideSum{has_zeros}))};
}

ValueRange max_of(Bounds x) {
  ValueRange result = x[0];
  for (const ValueRange& each : x) result = {std::max(result.min, each.min), std::max(result.max, each.max)};
  return result;
}

ValueRange min_of(Bounds x) {
  ValueRange result = x[0];
  for (const ValueRange& each : x) result = {std::min(result.min, each.min), std::min(result.max, each.max)};
  return result;
}

ValueRange ceil_div(Bounds x) { return negated(floor_divide(negated(x[0]), x[1])); }
ValueRange mod(Bounds x) { return modulo(x[0], x[1]); }
ValueRange modular_indexing(Bounds x) { return modulo(floor_divide(x[0], x[1]), x[2]); }
ValueRange truth(Bounds) { return kTruth; }

ValueRange where(Bounds x) {
  if (x[0].min > 0 || x[0].max < 0) return x[1];
  return x[0] == ValueRange::of(0) ? x[2] : joined(x[1], x[2]);
}

ValueRange abs_of(Bounds x) {
  if (x[0].min >= 0) return x[0];
  const ValueRange other = negated(x[0]);
  return other.min >= 0 ? other : ValueRange{0, std::max(x[0].max, other.max)};
}

// Pow2Floor has a value only for operands of at least 1.
ValueRange pow2_floor(Bounds x) {
  const auto end = [](int64_t value) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
  };
  return {end(x[0].min), x[0].has_max() ? end(x[0].max) : ValueRange::kNoMax};
}

struct BoundsFunction {
  std::string_view name;
  ValueRange (*bounds)(Bounds);
};

// The same functions as in ExprTable::evaluate().
constexpr BoundsFunction kBoundsFunctions[] = {{"Max", max_of},          {"Min", min_of},
                                               {"CeilDiv", ceil_div},    {"Mod", mod},
                                               {"Abs", abs_of},          {"ModularIndexing", modular_indexing},
                                               {"And", truth},           {"Or", truth},
                                               {"Not", truth},           {"Where", where},
                                               {"Pow2Floor", pow2_floor}};

ValueRange bounds_of_call(std::string_view name, Bounds inputs) {
  const auto* found = std::ranges::find(kBoundsFunctions, name, &BoundsFunction::name);
  const bool fits = found != std::end(kBoundsFunctions) && ExprTable::takes(name, inputs.size());
  return fits ? found->bounds(inputs) : kAnyValue;
}

ValueRange bounds_of_operator(ExprKind kind, Bounds x) {
  switch (kind) {
    case ExprKind::kAdd:
      return x[0] + x[1];
    case ExprKind::kSub:
      return x[0] - x[1];
    case ExprKind::kMul:
      return x[0] * x[1];
    case ExprKind::kFloorDiv:
    case ExprKind::kTrueDiv:  // has a value only if there is no remainder
      return floor_divide(x[0], x[1]);
    case ExprKind::kMod:
      return modulo(x[0], x[1]);
    case ExprKind::kPow:
      return power(x[0], x[1]);
    case ExprKind::kNeg:
      return negated(x[0]);
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kLe:
    case ExprKind::kGe:
    case ExprKind::kLt:
    case ExprKind::kGt:
      return kTruth;
    default:
      return kAnyValue;
  }
}

}  // namespace

ValueRange operator+(ValueRange a, ValueRange b) {
  return {a.has_min() && b.has_min() ? lower_end(WideSum{a.min} + b.min) : ValueRange::kNoMin,
          a.has_max() && b.has_max() ? upper_end(WideSum{a.max} + b.max) : ValueRange::kNoMax};
}

ValueRange operator-(ValueRange a, ValueRange b) { return a + negated(b); }

ValueRange operator*(ValueRange a, ValueRange b) {
  const auto [min, max] =
      std::minmax({WideSum{a.min} * b.min, WideSum{a.min} * b.max, WideSum{a.max} * b.min, WideSum{a.max} * b.max});
  return {lower_end(min), upper_end(max)};
}

ValueRange ExprBounds::operator[](ExprId id) {
  std::vector<ExprId> pending = {id};
  while (!pending.empty()) {
    const ExprId next = pending.back();
    const size_t before = pending.size();
    if (!bounds_.contains(next)) {
      for (const ExprId input : table_[next].inputs) {
        if (!bounds_.contains(input)) pending.push_back(input);
      }
      if (pending.size() > before) continue;
      bounds_.emplace(next, of(table_[next]));
    }
    pending.pop_back();
  }
  return bounds_.at(id);
}

ValueRange ExprBounds::of(const Expr& expr) const {
  if (expr.kind == ExprKind::kInt) return ValueRange::of(expr.value);
  if (expr.kind == ExprKind::kBigInt) return kAnyValue;
  if (expr.kind == ExprKind::kSymbol) {
    const SymbolRanges::const_iterator found = ranges_.find(expr.name);
    return found == ranges_.end() ? kAnyValue : found->second;
  }
  std::vector<ValueRange> inputs;
  for (const ExprId input : expr.inputs) inputs.push_back(bounds_.at(input));
  return expr.kind == ExprKind::kCall ? bounds_of_call(strings_[expr.name], inputs)
                                      : bounds_of_operator(expr.kind, inputs);
}

}  // namespace fxopt
