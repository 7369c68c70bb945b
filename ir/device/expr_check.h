#pragma once

#include "ir/graph/expr.h"

namespace fxopt {

// What can be told of an expression without the values of its symbols: parts that never have one. Those are floats,
// divisions by what is 0, functions with a wrong number of arguments, numbers beyond 64 bits, and what stands on them,
// but for the branch that a Where leaves out.

// The first of them, inputs before users; invalid when each part may have a value. Functions without a meaning may.
// O(n log n).
ExprId find_valueless(const ExprTable& exprs, const Interner& strings, ExprId id);

// True when the whole never has a value. O(n log n).
bool is_valueless(const ExprTable& exprs, const Interner& strings, ExprId id);

}  // namespace fxopt
