#pragma once

#include "ir/graph/module.h"

namespace fxopt {

// Whether a file can leave out the strides of `tensor`. True if the layout is strided and the
// strides are those that Module::contiguous_strides makes from the sizes. Interns nothing. O(rank).
bool are_strides_implied(const Module& module, const Tensor& tensor);

}  // namespace fxopt
