#pragma once

#include "ir/graph/module.h"
#include "ir/ops/op.h"

namespace fxopt {

// Returns the op that a schema record of the module describes: see describe_op(). Returns
// opaque_op() if the schema cannot be parsed, which the verifier reports. O(arguments * returns).
Op described_op(const Module& module, const OpSchemaRecord& record);

}  // namespace fxopt
