#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/graph/expr.h"

namespace fxopt {

// A Number is an integer, a binary64, or unknown. Sizes that depend on a scale factor are computed
// with floats, as in TruncToInt(1.7 * ToFloat(s0)).

// Returns the value of an operator or a call with a float result or a float input. Rounds as Python
// does. The result is unknown for a division by zero, for results outside of 64 bits, and for
// functions whose last bit depends on the C library (powers, square roots). O(inputs).
Number apply_to_floats(ExprKind kind, std::string_view function, std::span<const Number> inputs);

// Returns true if the function converts to or from floats, so that apply_to_floats() handles it.
// O(functions).
bool is_float_function(std::string_view name);

}  // namespace fxopt
