#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/abi/plan.h"

namespace fxopt {

// A number on the host, which is an integer, a bool or a double.
struct ScalarValue {
  FxScalarType type = FX_SCALAR_INT;
  int64_t integer = 0;  // the value if `type` is INT; 0 or 1 if `type` is BOOL
  double real = 0;      // the value if `type` is FLOAT

  static ScalarValue of(int64_t value) { return {FX_SCALAR_INT, value, 0}; }
  static ScalarValue of_bool(bool value) { return {FX_SCALAR_BOOL, value ? 1 : 0, 0}; }
  static ScalarValue of_real(double value) { return {FX_SCALAR_FLOAT, 0, value}; }
  double as_real() const { return type == FX_SCALAR_FLOAT ? real : static_cast<double>(integer); }
  bool as_bool() const { return type == FX_SCALAR_FLOAT ? real != 0 : integer != 0; }
};

// Returns the value of a scalar that is not computed from other scalars, such as an input's size or
// a step's result. Returns nullopt if the value is unknown.
using ScalarSource = std::function<std::optional<ScalarValue>(uint32_t scalar)>;

// The values of the scalars of a plan. A value may be unknown.
class ScalarValues {
 public:
  explicit ScalarValues(const FxPlan& plan) : plan_(&plan), values_(plan.num_scalars) {}

  // Evaluates all scalars in the order of the plan. `source` provides the scalars that are not
  // computed from other scalars. O(scalars + code).
  static ScalarValues of(const FxPlan& plan, const ScalarSource& source);
  // by_symbols() evaluates all scalars in the order of the plan. For a scalar that is not computed
  // from other scalars, by_symbols() calls the function symbol_value() below. The argument `given`
  // is a function that returns the value of the symbol `name`, or nullopt if the caller gives no
  // value for the symbol.
  using SymbolOf = std::function<std::optional<int64_t>(std::string_view name)>;
  static ScalarValues by_symbols(const FxPlan& plan, const SymbolOf& given);

  void set(uint32_t scalar, std::optional<ScalarValue> value) { values_[scalar] = value; }
  // Computes a scalar whose source is FX_SCALAR_CODE. The operands have the values that are known
  // when compute() is called. O(code). Returns nullopt in these cases:
  // - An operand is unknown.
  // - The code divides by zero.
  // - A number overflows 64 bits.
  // - The code is malformed.
  std::optional<ScalarValue> compute(uint32_t scalar) const;

  // Returns the value of a word that is a number or a scalar. Returns nullopt for any other word,
  // or if the value is unknown. O(1).
  std::optional<ScalarValue> value(FxWord word) const;
  std::optional<int64_t> integer(FxWord word) const;

 private:
  const FxPlan* plan_;
  std::vector<std::optional<ScalarValue>> values_;
};

// Returns the value of a scalar from its symbol, without the values of inputs or steps. The value
// is the first of these values that exists:
// - the value that `given` returns for the scalar's symbol
// - the file's hint for the symbol
// - the only value in the symbol's range
//
// Returns nullopt if none of the three values exists. O(1), plus the cost of `given`.
std::optional<ScalarValue> symbol_value(const FxPlan& plan, const FxScalar& scalar,
                                        const ScalarValues::SymbolOf& given);

// Returns nullopt for every symbol. A caller without values of symbols passes this function as the
// argument `given` of by_symbols() or symbol_value(). With this argument, symbol_value() returns:
// - the file's hint for the symbol, if the file has a hint
// - the only value in the symbol's range, if there is no hint and the range has only one value
// - otherwise nullopt
inline std::optional<int64_t> no_symbol_value(std::string_view) { return std::nullopt; }

// Applies one operator to its operands, as Python does. The last entry of `operands` is the top of
// the stack. Returns nullopt if Python raises an error, or if a number overflows 64 bits.
// `operands` must have as many entries as the operator takes.
std::optional<ScalarValue> apply_code(FxCodeOp op, const ScalarValue* operands);
// Returns the number of operands of the operator. Returns 0 for PUSH and for invalid operators.
int num_operands(uint32_t op);

}  // namespace fxopt
