#pragma once

#include "ir/ops/op.h"

// Reads the facts of an Op from a schema. The built-in table and describe_op() share read_schema().

namespace fxopt {

// Sets the fields of `op` that follow from `schema`, such as Op::schema, writes, aliases, view,
// is_multi_output and mask_arg. Adds the effect kMutates if the op writes an argument. Keeps the
// effects that `op` already has. O(arguments * returns).
void read_schema(const Schema& schema, Op& op);

}  // namespace fxopt
