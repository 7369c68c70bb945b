#pragma once

#include <cstddef>

#include "ir/graph/module.h"

namespace fxopt {

// Adds missing values to calls. A value is the recorded description of a result, such as dtype and
// sizes. This function completes only one kind of call: a call that takes an operator as an
// argument and runs this operator. An example is run_with_rng_state(state, native_dropout, ...).
// The getitem that takes the operator's result from run_and_save_rng_state also gets its value.
// Each element of the call's result gets the value of the getitem that reads the element. If no
// getitem has a value for an element, the value is derived only for native_dropout, from the input
// of native_dropout. The derived values are a tensor like the input, and a mask. A call is left
// unchanged if one of its elements is unknown.
//
// Use this function only to analyse a module that is not written to a file, because derived values
// do not come from the tracer. Returns the number of calls that got a value. O(nodes + edges).
size_t complete_values(Module& module);

}  // namespace fxopt
