#pragma once

#include "core/error.h"
#include "ir/check/equivalence/equivalence.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns the error for a failed proof: kNotEquivalent or kNotProved. The error names the first
// difference, the number of other differences, and the first call of the output graph that has no
// counterpart in the input graph. `judged` is the output module.
Error proof_error(const Module& judged, const ModuleProof& proof);

}  // namespace fxopt
