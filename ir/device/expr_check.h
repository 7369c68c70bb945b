#pragma once

#include "ir/graph/expr.h"

namespace fxopt {

// Checks of an expression that do not need the values of its symbols. The checks find parts that
// never have a value:
// - floats, because values are integers;
// - divisions by 0;
// - functions with a wrong number of arguments;
// - numbers beyond 64 bits;
// - parts that depend on a part without a value. A Where does not depend on a branch that it never
//   selects.
//
// Calls of unknown functions may have a value.
//
// find_valueless() returns the first part that never has a value. Inputs are checked before their
// users. The result is invalid if each part may have a value. O(n log n).
ExprId find_valueless(const ExprTable& exprs, const Interner& strings, ExprId id);

// True if the whole expression never has a value, even if all symbols have values. O(n log n).
bool is_valueless(const ExprTable& exprs, const Interner& strings, ExprId id);

}  // namespace fxopt
