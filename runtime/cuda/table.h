// The kernels of a GPU, by name. The table has the functions that return numbers of units, lanes
// and workspace bytes, but not the code of the kernels.
#pragma once

#include "runtime/abi/kernel.h"

namespace fxopt::cuda {

const FxKernelTable& kernel_table();
const FxKernel* find_kernel(const char* name);  // returns null if no kernel has this name

}  // namespace fxopt::cuda
