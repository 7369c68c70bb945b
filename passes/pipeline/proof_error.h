#pragma once

#include "core/error.h"
#include "ir/check/equivalence/equivalence.h"
#include "ir/graph/module.h"

namespace fxopt {

// What to print of a proof that failed: kNotEquivalent or kNotProved, with the first difference, how many more there are,
// and the first call that is new. `judged` is the module after.
Error proof_error(const Module& judged, const ModuleProof& proof);

}  // namespace fxopt
