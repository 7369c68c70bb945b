// The kernels of a GPU by name, without their code: the units of a call, the lanes that share a
// unit, and the workspace.
#pragma once

#include "runtime/abi/kernel.h"

namespace fxopt::cuda {

const FxKernelTable& kernel_table();
const FxKernel* find_kernel(const char* name);  // null if it does not exist

}  // namespace fxopt::cuda
