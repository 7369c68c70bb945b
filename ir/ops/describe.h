#pragma once

#include "ir/ops/op.h"

// Shared by the table and describe_op(): reading an Op from a schema.

namespace fxopt {

// Fills in the facts that annotations show: the schema itself, writes and their effect, aliases,
// the kind of view, multi-output, and the positions of deciding arguments. Effects set before are
// kept. O(arguments * returns).
void read_schema(const Schema& schema, Op& op);

}  // namespace fxopt
