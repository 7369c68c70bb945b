#pragma once

#include "ir/ops/op.h"

// What the table and describe_op() share: reading an Op off a schema.

namespace fxopt {

// Fills in what the annotations say: the schema itself, writes and their effect, aliases, the kind of view,
// multi-output, and the positions of deciding arguments. Effects set before are kept. O(arguments * returns).
void read_schema(const Schema& schema, Op& op);

}  // namespace fxopt
