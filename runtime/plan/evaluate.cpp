#include "runtime/plan/evaluate.h"

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

using Known = std::optional<ScalarValue>;

constexpr size_t kMaxStack = 256;

bool are_integers(const ScalarValue& a, const ScalarValue& b) {
  return a.type != FX_SCALAR_FLOAT && b.type != FX_SCALAR_FLOAT;
}

std::optional<int64_t> floor_div(int64_t a, int64_t b) {
  if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1)) return std::nullopt;
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// The result has the sign of the divisor.
std::optional<int64_t> floor_mod(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// Computes like CPython's float_divmod(). fmod() avoids a quotient that is one too large if a / b
// rounds up to an integer.
struct RealDivMod {
  double quotient = 0, rest = 0;
};
std::optional<RealDivMod> real_divmod(double a, double b) {
  if (b == 0) return std::nullopt;
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (quotient == 0) return RealDivMod{std::copysign(0.0, a / b), rest};
  const double floored = std::floor(quotient);
  return RealDivMod{quotient - floored > 0.5 ? floored + 1 : floored, rest};
}

std::optional<int64_t> int_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return std::nullopt;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
  return result;
}

Known integer_or_nothing(std::optional<int64_t> value) {
  return value.has_value() ? Known(ScalarValue::of(*value)) : std::nullopt;
}

Known on_integers(FxCodeOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case FX_CODE_ADD:
      return __builtin_add_overflow(a, b, &result) ? Known() : ScalarValue::of(result);
    case FX_CODE_SUB:
      return __builtin_sub_overflow(a, b, &result) ? Known() : ScalarValue::of(result);
    case FX_CODE_MUL:
      return __builtin_mul_overflow(a, b, &result) ? Known() : ScalarValue::of(result);
    case FX_CODE_FLOORDIV:
      return integer_or_nothing(floor_div(a, b));
    case FX_CODE_MOD:
      return integer_or_nothing(floor_mod(a, b));
    case FX_CODE_CEILDIV: {
      const std::optional<int64_t> down = a == std::numeric_limits<int64_t>::min() ? std::nullopt : floor_div(-a, b);
      if (!down.has_value() || *down == std::numeric_limits<int64_t>::min()) return std::nullopt;
      return ScalarValue::of(-*down);
    }
    case FX_CODE_POW:
      if (b >= 0) return integer_or_nothing(int_power(a, b));
      return a == 0 ? Known() : ScalarValue::of_real(std::pow(static_cast<double>(a), static_cast<double>(b)));
    default:
      return std::nullopt;
  }
}

Known on_reals(FxCodeOp op, double a, double b) {
  switch (op) {
    case FX_CODE_ADD:
      return ScalarValue::of_real(a + b);
    case FX_CODE_SUB:
      return ScalarValue::of_real(a - b);
    case FX_CODE_MUL:
      return ScalarValue::of_real(a * b);
    case FX_CODE_FLOORDIV:
    case FX_CODE_MOD: {
      const std::optional<RealDivMod> both = real_divmod(a, b);
      if (!both.has_value()) return std::nullopt;
      return ScalarValue::of_real(op == FX_CODE_MOD ? both->rest : both->quotient);
    }
    case FX_CODE_POW:
      // In Python, the first case is an error, and the second case is a complex number.
      if ((a == 0 && b < 0) || (a < 0 && b != std::floor(b))) return std::nullopt;
      return ScalarValue::of_real(std::pow(a, b));
    default:
      return std::nullopt;
  }
}

bool compare(FxCodeOp op, const ScalarValue& a, const ScalarValue& b) {
  const auto by = [op](const auto& x, const auto& y) {
    switch (op) {
      case FX_CODE_EQ:
        return x == y;
      case FX_CODE_NE:
        return x != y;
      case FX_CODE_LE:
        return x <= y;
      case FX_CODE_GE:
        return x >= y;
      case FX_CODE_LT:
        return x < y;
      default:
        return x > y;
    }
  };
  return are_integers(a, b) ? by(a.integer, b.integer) : by(a.as_real(), b.as_real());
}

Known negated(const ScalarValue& a) {
  if (a.type == FX_SCALAR_FLOAT) return ScalarValue::of_real(-a.real);
  return a.integer == std::numeric_limits<int64_t>::min() ? Known() : ScalarValue::of(-a.integer);
}

Known unary(FxCodeOp op, const ScalarValue& a) {
  switch (op) {
    case FX_CODE_NEG:
      return negated(a);
    case FX_CODE_ABS:
      if (a.type == FX_SCALAR_FLOAT) return ScalarValue::of_real(std::fabs(a.real));
      return a.integer < 0 ? negated(a) : Known(ScalarValue::of(a.integer));
    case FX_CODE_NOT:
      return ScalarValue::of_bool(!a.as_bool());
    case FX_CODE_POW2FLOOR:
      if (a.type == FX_SCALAR_FLOAT || a.integer < 1) return std::nullopt;
      return ScalarValue::of(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(a.integer))));
    default:
      return std::nullopt;
  }
}

Known binary(FxCodeOp op, const ScalarValue& a, const ScalarValue& b) {
  switch (op) {
    case FX_CODE_AND:
      return a.as_bool() ? b : a;
    case FX_CODE_OR:
      return a.as_bool() ? a : b;
    case FX_CODE_MAX:  // the first of equals, like Python's max
      return compare(FX_CODE_GT, b, a) ? b : a;
    case FX_CODE_MIN:
      return compare(FX_CODE_LT, b, a) ? b : a;
    case FX_CODE_TRUEDIV:
      return b.as_real() == 0 ? Known() : ScalarValue::of_real(a.as_real() / b.as_real());
    case FX_CODE_EQ:
    case FX_CODE_NE:
    case FX_CODE_LE:
    case FX_CODE_GE:
    case FX_CODE_LT:
    case FX_CODE_GT:
      return ScalarValue::of_bool(compare(op, a, b));
    default:
      return are_integers(a, b) ? on_integers(op, a.integer, b.integer) : on_reals(op, a.as_real(), b.as_real());
  }
}

}  // namespace

int num_operands(uint32_t op) {
  if (op == FX_CODE_PUSH || op >= FX_NUM_CODE_OPS) return 0;
  if (op == FX_CODE_WHERE || op == FX_CODE_INDEXING) return 3;
  return op == FX_CODE_NEG || op == FX_CODE_ABS || op == FX_CODE_NOT || op == FX_CODE_POW2FLOOR ? 1 : 2;
}

Known apply_code(FxCodeOp op, const ScalarValue* operands) {
  switch (num_operands(op)) {
    case 1:
      return unary(op, operands[0]);
    case 2:
      return binary(op, operands[0], operands[1]);
    case 3:
      break;
    default:
      return std::nullopt;
  }
  if (op == FX_CODE_WHERE) return operands[0].as_bool() ? operands[1] : operands[2];
  const Known quotient = binary(FX_CODE_FLOORDIV, operands[0], operands[1]);
  return quotient.has_value() ? binary(FX_CODE_MOD, *quotient, operands[2]) : std::nullopt;
}

Known ScalarValues::value(FxWord word) const {
  const uint32_t index = index_of(word);
  switch (kind_of(word)) {
    case FX_WORD_INT:
      return ScalarValue::of(small_int_of(word));
    case FX_WORD_NUMBER:
      return index < plan_->num_numbers ? Known(ScalarValue::of(plan_->numbers[index])) : std::nullopt;
    case FX_WORD_DOUBLE:
      if (index >= plan_->num_numbers) return std::nullopt;
      return ScalarValue::of_real(std::bit_cast<double>(plan_->numbers[index]));
    case FX_WORD_BOOL:
      return ScalarValue::of_bool(small_int_of(word) != 0);
    case FX_WORD_SCALAR:
      return index < values_.size() ? values_[index] : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> ScalarValues::integer(FxWord word) const {
  const Known known = value(word);
  return known.has_value() && known->type != FX_SCALAR_FLOAT ? std::optional(known->integer) : std::nullopt;
}

Known ScalarValues::compute(uint32_t scalar) const {
  const FxScalar& row = plan_->scalars[scalar];
  if (uint64_t{row.code} + row.num_code > plan_->num_code) return std::nullopt;
  std::vector<ScalarValue> stack;
  for (uint32_t i = row.code; i < row.code + row.num_code; ++i) {
    const FxCode& code = plan_->code[i];
    if (code.op == FX_CODE_PUSH) {
      const Known pushed = value(code.push);
      if (!pushed.has_value() || stack.size() >= kMaxStack) return std::nullopt;
      stack.push_back(*pushed);
      continue;
    }
    const size_t count = static_cast<size_t>(num_operands(code.op));
    if (count == 0 || stack.size() < count) return std::nullopt;
    const Known result = apply_code(static_cast<FxCodeOp>(code.op), stack.data() + stack.size() - count);
    if (!result.has_value()) return std::nullopt;
    stack.resize(stack.size() - count);
    stack.push_back(*result);
  }
  return stack.size() == 1 ? Known(stack.front()) : std::nullopt;
}

ScalarValues ScalarValues::of(const FxPlan& plan, const ScalarSource& source) {
  ScalarValues values(plan);
  for (uint32_t i = 0; i < plan.num_scalars; ++i) {
    values.values_[i] = plan.scalars[i].source == FX_SCALAR_CODE ? values.compute(i) : source(i);
  }
  return values;
}

std::optional<ScalarValue> symbol_value(const FxPlan& plan, const FxScalar& scalar,
                                        const ScalarValues::SymbolOf& given) {
  if (scalar.name != FX_NONE) {
    if (const std::optional<int64_t> value = given(text_at(plan, scalar.name))) return ScalarValue::of(*value);
  }
  if (scalar.hint != std::numeric_limits<int64_t>::min()) return ScalarValue::of(scalar.hint);
  return scalar.min == scalar.max ? Known(ScalarValue::of(scalar.min)) : std::nullopt;
}

ScalarValues ScalarValues::by_symbols(const FxPlan& plan, const SymbolOf& given) {
  return of(plan, [&](uint32_t index) -> Known { return symbol_value(plan, plan.scalars[index], given); });
}

}  // namespace fxopt
