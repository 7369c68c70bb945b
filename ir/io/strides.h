#pragma once

#include "ir/graph/module.h"

namespace fxopt {

// Whether a file can leave the strides of `tensor` out: they are those that Module::contiguous_strides makes from its
// sizes, and the layout is strided. Interns nothing. O(rank).
bool are_strides_implied(const Module& module, const Tensor& tensor);

}  // namespace fxopt
