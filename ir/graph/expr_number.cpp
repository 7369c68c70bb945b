#include "ir/graph/expr_number.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace fxopt {
namespace {

constexpr int64_t kExact = int64_t{1} << 53;  // integers up to this limit are exact as floats

// Returns an input as an exact float. Returns nothing if the value is unknown, or if it is an
// integer that a float may not represent.
std::optional<double> real(const Number& number) {
  if (const auto* value = std::get_if<double>(&number); value != nullptr) return *value;
  const auto* integer = std::get_if<int64_t>(&number);
  if (integer == nullptr || *integer > kExact || *integer < -kExact) return std::nullopt;
  return static_cast<double>(*integer);
}

Number whole(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  return value >= -kEnd && value < kEnd ? Number(static_cast<int64_t>(value)) : Number();
}

Number to_float(std::span<const Number> x) { return *real(x[0]); }
Number trunc_to_int(std::span<const Number> x) { return whole(std::trunc(*real(x[0]))); }
Number floor_to_int(std::span<const Number> x) { return whole(std::floor(*real(x[0]))); }
Number ceil_to_int(std::span<const Number> x) { return whole(std::ceil(*real(x[0]))); }
Number trunc_to_float(std::span<const Number> x) { return std::trunc(*real(x[0])); }

// Rounds half to even in every rounding mode of the processor.
Number round_to_int(std::span<const Number> x) {
  const double value = *real(x[0]), down = std::floor(value), rest = value - down;
  const bool is_up = rest > 0.5 || (rest == 0.5 && std::fmod(down, 2.0) != 0.0);
  return whole(is_up ? down + 1.0 : down);
}

Number float_true_div(std::span<const Number> x) {
  return *real(x[1]) == 0.0 ? Number() : Number(*real(x[0]) / *real(x[1]));
}

struct FloatFunction {
  std::string_view name;
  size_t arguments;
  bool keeps_integers;  // an integer argument is the result
  Number (*apply)(std::span<const Number>);
};

constexpr FloatFunction kFloatFunctions[] = {
    {"ToFloat", 1, false, to_float},          {"TruncToInt", 1, true, trunc_to_int},
    {"FloorToInt", 1, true, floor_to_int},    {"CeilToInt", 1, true, ceil_to_int},
    {"RoundToInt", 1, true, round_to_int},    {"TruncToFloat", 1, false, trunc_to_float},
    {"IntTrueDiv", 2, false, float_true_div}, {"FloatTrueDiv", 2, false, float_true_div},
};

const FloatFunction* find_float_function(std::string_view name) {
  const auto* found = std::ranges::find(kFloatFunctions, name, &FloatFunction::name);
  return found == std::end(kFloatFunctions) ? nullptr : found;
}

Number apply_float_function(std::string_view name, std::span<const Number> inputs) {
  if (name == "Max" || name == "Min") {
    double best = *real(inputs[0]);
    for (const Number& each : inputs) best = name == "Max" ? std::max(best, *real(each)) : std::min(best, *real(each));
    return best;
  }
  const FloatFunction* function = find_float_function(name);
  if (function == nullptr || function->arguments != inputs.size()) return {};
  if (function->keeps_integers && std::holds_alternative<int64_t>(inputs[0])) return inputs[0];
  return function->apply(inputs);
}

Number truth_of(bool value) { return int64_t{value ? 1 : 0}; }

Number apply_float_operator(ExprKind kind, double a, double b) {
  switch (kind) {
    case ExprKind::kAdd:
      return a + b;
    case ExprKind::kSub:
      return a - b;
    case ExprKind::kMul:
      return a * b;
    case ExprKind::kTrueDiv:
      return b == 0.0 ? Number() : Number(a / b);
    case ExprKind::kEq:
      return truth_of(a == b);
    case ExprKind::kNe:
      return truth_of(a != b);
    case ExprKind::kLe:
      return truth_of(a <= b);
    case ExprKind::kGe:
      return truth_of(a >= b);
    case ExprKind::kLt:
      return truth_of(a < b);
    case ExprKind::kGt:
      return truth_of(a > b);
    default:
      return {};
  }
}

}  // namespace

bool is_float_function(std::string_view name) { return find_float_function(name) != nullptr; }

Number apply_to_floats(ExprKind kind, std::string_view function, std::span<const Number> inputs) {
  const bool are_known = std::all_of(inputs.begin(), inputs.end(), [](const Number& x) { return real(x).has_value(); });
  if (inputs.empty() || !are_known) return {};
  if (kind == ExprKind::kCall) return apply_float_function(function, inputs);
  if (kind == ExprKind::kNeg) return -*real(inputs[0]);
  return apply_float_operator(kind, *real(inputs[0]), *real(inputs[1]));
}

}  // namespace fxopt
