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

// Returns the value of a scalar that is not computed: an input's size, or a step's result. Nullopt:
// unknown.
using ScalarSource = std::function<std::optional<ScalarValue>(uint32_t scalar)>;

// The scalars of a plan, as far as they are known.
class ScalarValues {
 public:
  explicit ScalarValues(const FxPlan& plan) : plan_(&plan), values_(plan.num_scalars) {}

  // Evaluates all scalars in their order. O(scalars + code).
  static ScalarValues of(const FxPlan& plan, const ScalarSource& source);
  // Evaluates with the values of symbols: the value given by name, else the file's hint, else the
  // only value in its range.
  using SymbolOf = std::function<std::optional<int64_t>(std::string_view name)>;
  static ScalarValues by_symbols(const FxPlan& plan, const SymbolOf& given);

  void set(uint32_t scalar, std::optional<ScalarValue> value) { values_[scalar] = value; }
  // Runs the code of a CODE scalar on the values known now. Returns nullopt if an operand is
  // unknown, on a division by zero, on an overflow of 64 bits, and if the code is malformed.
  // O(code).
  std::optional<ScalarValue> compute(uint32_t scalar) const;

  // Returns the value of a word that is a number or a scalar; nullopt for other words and unknown
  // values. O(1).
  std::optional<ScalarValue> value(FxWord word) const;
  std::optional<int64_t> integer(FxWord word) const;

 private:
  const FxPlan* plan_;
  std::vector<std::optional<ScalarValue>> values_;
};

// Returns the value of a scalar without an input or step as its source: the value given for its
// symbol, else the file's hint, else the only value in its range. O(1), plus the cost of `given`.
std::optional<ScalarValue> symbol_value(const FxPlan& plan, const FxScalar& scalar,
                                        const ScalarValues::SymbolOf& given);

// For by_symbols(): gives no value.
inline std::optional<int64_t> no_symbol_value(std::string_view) { return std::nullopt; }

// Applies one operator to its operands, the last on top, as Python computes it. Returns nullopt if
// Python raises an error, and on an overflow of 64 bits. `operands` must have as many entries as
// the operator takes.
std::optional<ScalarValue> apply_code(FxCodeOp op, const ScalarValue* operands);
// Returns the number of operands of the operator; 0 for PUSH and for invalid operators.
int num_operands(uint32_t op);

}  // namespace fxopt
