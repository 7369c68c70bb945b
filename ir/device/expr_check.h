#pragma once

#include "ir/graph/expr.h"

namespace fxopt {

// Checks of an expression that need no values of its symbols. They find parts that never have a
// value: floats, divisions by 0, functions with a wrong number of arguments, numbers beyond 64
// bits, and parts that depend on these, except through a branch that a Where leaves out.
//
// The first such part, inputs before users; invalid if each part may have a value. Calls of unknown
// functions may have one. O(n log n).
ExprId find_valueless(const ExprTable& exprs, const Interner& strings, ExprId id);

// True if the whole expression never has a value. O(n log n).
bool is_valueless(const ExprTable& exprs, const Interner& strings, ExprId id);

}  // namespace fxopt
