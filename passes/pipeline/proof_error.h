#pragma once

#include "core/error.h"
#include "ir/check/equivalence/equivalence.h"
#include "ir/graph/module.h"

namespace fxopt {

// The error for a failed proof: kNotEquivalent or kNotProved, with the first difference, the number
// of others, and the first new call. `judged` is the module after.
Error proof_error(const Module& judged, const ModuleProof& proof);

}  // namespace fxopt
