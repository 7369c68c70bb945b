#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/abi/plan.h"

namespace fxopt {

// A number on the host: an integer, a bool, or a double.
struct ScalarValue {
  FxScalarType type = FX_SCALAR_INT;
  int64_t integer = 0;  // INT, and BOOL: 0 or 1
  double real = 0;      // FLOAT

  static ScalarValue of(int64_t value) { return {FX_SCALAR_INT, value, 0}; }
  static ScalarValue of_bool(bool value) { return {FX_SCALAR_BOOL, value ? 1 : 0, 0}; }
  static ScalarValue of_real(double value) { return {FX_SCALAR_FLOAT, 0, value}; }
  double as_real() const { return type == FX_SCALAR_FLOAT ? real : static_cast<double>(integer); }
  bool as_bool() const { return type == FX_SCALAR_FLOAT ? real != 0 : integer != 0; }
};

// The value of a scalar of a plan that is not computed: what an input's size is, what a step found. Nothing: not known.
using ScalarSource = std::function<std::optional<ScalarValue>(uint32_t scalar)>;

// The scalars of a plan, as far as they are known.
class ScalarValues {
 public:
  explicit ScalarValues(const FxPlan& plan) : plan_(&plan), values_(plan.num_scalars) {}

  // Evaluates all scalars in their order. O(scalars + code).
  static ScalarValues of(const FxPlan& plan, const ScalarSource& source);
  // With the values of symbols: those given by name, else the file's hint, else the one value of its range.
  using SymbolOf = std::function<std::optional<int64_t>(std::string_view name)>;
  static ScalarValues by_symbols(const FxPlan& plan, const SymbolOf& given);

  void set(uint32_t scalar, std::optional<ScalarValue> value) { values_[scalar] = value; }
  // Runs the code of a CODE scalar on what is known now. Nothing where an operand is not known, on a division by zero, on
  // an overflow of 64 bits, and where the code is not well formed. O(code).
  std::optional<ScalarValue> compute(uint32_t scalar) const;

  // A word that is a number or a scalar; nothing for others and for what is not known. O(1).
  std::optional<ScalarValue> value(FxWord word) const;
  std::optional<int64_t> integer(FxWord word) const;

 private:
  const FxPlan* plan_;
  std::vector<std::optional<ScalarValue>> values_;
};

// A scalar's value where no input and no step tells it: what is given for its symbol, else the file's hint, else the one value of its
// range. O(1), and what `given` takes.
std::optional<ScalarValue> symbol_value(const FxPlan& plan, const FxScalar& scalar,
                                        const ScalarValues::SymbolOf& given);

// For by_symbols(): nothing is given.
inline std::optional<int64_t> no_symbol_value(std::string_view) { return std::nullopt; }

// One operator on its operands, the last on top, as Python computes it. Nothing where Python raises an error, and on an
// overflow of 64 bits. The operands must be as many as the operator takes.
std::optional<ScalarValue> apply_code(FxCodeOp op, const ScalarValue* operands);
// How many operands the operator takes; 0 for PUSH and for what is no operator.
int num_operands(uint32_t op);

}  // namespace fxopt
