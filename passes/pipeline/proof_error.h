#pragma once

#include "core/error.h"
#include "ir/check/equivalence/equivalence.h"
#include "ir/graph/module.h"

namespace fxopt {

// What to print of a proof that failed: kNotEquivalent or kNotProved, with the first difference, how many more there are,
// and the first call that is new. `after` is the module that was judged.
Error proof_error(const Module& after, const ModuleProof& proof);

}  // namespace fxopt
