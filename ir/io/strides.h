#pragma once

#include "ir/graph/module.h"

namespace fxopt {

// Returns true if a file can omit the strides of `tensor`. The layout must be strided, and the
// strides must be equal to the strides that Module::contiguous_strides() makes from the sizes. Adds
// nothing to the module. O(rank).
bool are_strides_implied(const Module& module, const Tensor& tensor);

}  // namespace fxopt
