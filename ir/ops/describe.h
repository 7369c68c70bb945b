#pragma once

#include "ir/ops/op.h"

// Reads the facts of an Op from a schema. The built-in table and describe_op() share read_schema().

namespace fxopt {

// Sets the facts that the schema's annotations show: the schema, writes and their effect, aliases,
// the kind of view, multi-output, and the positions of deciding arguments. Keeps the effects that
// are already set. O(arguments * returns).
void read_schema(const Schema& schema, Op& op);

}  // namespace fxopt
