#pragma once

#include "ir/graph/expr.h"

namespace fxopt {

// Checks of an expression that do not need the values of its symbols. The checks find parts that
// never have a value. A part is a number, a symbol, or an operation with its operands. These parts
// never have a value:
// - floats, because values are integers
// - integers that need more than 64 bits
// - divisions by 0
// - operations on constants that have no 64-bit result, such as `2 ** 64` and `Pow2Floor(0)`
// - function calls with a wrong number of arguments
// - operations with an operand that never has a value, except calls of unknown functions and of
//   `Where`
// - calls `Where(condition, a, b)` in three cases: `condition` never has a value, both branches
//   never have a value, or `condition` is constant and selects a branch that never has a value
//
// Calls of unknown functions may have a value.
//
// find_valueless() returns the first part that never has a value. Operands are checked before the
// operations that use them. If each part may have a value, the result is an invalid id. O(n log n).
ExprId find_valueless(const ExprTable& exprs, const Interner& strings, ExprId id);

// True if the whole expression never has a value, even if all symbols have values. O(n log n).
bool is_valueless(const ExprTable& exprs, const Interner& strings, ExprId id);

}  // namespace fxopt
