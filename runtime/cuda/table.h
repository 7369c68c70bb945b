// The kernels of a GPU by name, without their code: how many units a call has, how many lanes share one, which workspace it needs.
#pragma once

#include "runtime/abi/kernel.h"

namespace fxopt::cuda {

const FxKernelTable& kernel_table();
const FxKernel* find_kernel(const char* name);  // null: there is none

}  // namespace fxopt::cuda
