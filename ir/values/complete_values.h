#pragma once

#include <cstddef>

#include "ir/graph/module.h"

namespace fxopt {

// Adds values to calls that run another operator and were traced without a value, such as the
// framework's functions for random state (run_with_rng_state and its kin). The value of each
// element is its getitem's, else the known result of the operator for its input (native_dropout: a
// tensor like the input, and a mask). A call is left unchanged unless all its elements are known.
//
// Use only for analyses of a module that is not written: the values are derived, not the tracer's.
// Returns the number of calls that got a value. O(nodes + edges).
size_t complete_values(Module& module);

}  // namespace fxopt
