#pragma once

#include "ir/graph/module.h"
#include "ir/ops/op.h"

namespace fxopt {

// Returns the description that describe_op() (ir/ops/op.h) makes from the operator's schema in
// `record`. If the schema cannot be parsed, returns opaque_op(), and the verifier reports the
// schema. O(arguments * returns).
Op described_op(const Module& module, const OpSchemaRecord& record);

}  // namespace fxopt
