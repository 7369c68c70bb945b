#pragma once

#include <cstddef>

#include "ir/graph/module.h"

namespace fxopt {

// Adds values to calls that run another operator and were traced without a value. Examples are the
// framework's functions for random state, such as run_with_rng_state. Each element of the call's
// result gets the value of the getitem that reads it. If no getitem shows the value, the value is
// derived from the input of the operator that the call runs. For native_dropout, the derived values
// are a tensor like the input, and a mask. A call is left unchanged if one of its elements is
// unknown.
//
// Use this function only to analyse a module that is not written to a file, because derived values
// do not come from the tracer. Returns the number of calls that got a value. O(nodes + edges).
size_t complete_values(Module& module);

}  // namespace fxopt
