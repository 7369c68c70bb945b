#pragma once

#include <cstddef>

#include "ir/graph/module.h"

namespace fxopt {

// Gives values to calls that run another operator and were traced without theirs, as the framework's functions for
// random state are (run_with_rng_state and its kin): each element is what its getitem has, else what the operator is
// known to make of its input (native_dropout: one like it, and a mask). A call is left alone unless all of its elements
// are known. For analyses of a module that will not be written: the values are derived, not the tracer's. Returns how
// many calls got one. O(nodes + edges).
size_t complete_values(Module& module);

}  // namespace fxopt
