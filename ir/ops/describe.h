#pragma once

#include <cstdint>
#include <string_view>

#include "ir/ops/op.h"

// What the table and describe_op() share: reading an Op off a schema.

namespace fxopt {

// Fills in what the annotations say: the schema itself, writes and their effect, aliases, the kind of view,
// multi-output, and the positions of deciding arguments. Effects set before are kept. O(arguments * returns).
void read_schema(const Schema& schema, Op& op);

// The position of the argument called `name`, or -1. O(arguments).
int16_t find_arg(const Schema& schema, std::string_view name);

}  // namespace fxopt
