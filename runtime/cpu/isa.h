#pragma once

#include <string_view>
#include <vector>

#include "core/result.h"
#include "runtime/abi/kernel.h"

namespace fxopt {

// Returns the instruction sets for which this program has kernels and which this processor
// supports. The widest set is first. The names are "avx512" (x86-64-v4), "avx2" (x86-64-v3, which
// includes fma) and "base". Results have the same bits with every instruction set. O(1).
std::vector<std::string_view> cpu_isas();

// Returns the kernels of the instruction set named `isa`. If `isa` is empty, returns the kernels of
// the widest supported set. Fails with kBadOptionValue if the program has no kernels for the set,
// or if the processor does not support the set.
Result<const FxKernelTable*> cpu_kernels(std::string_view isa);

// Returns the kernel named `name` in a table, or nullptr if the table has no such kernel. O(log
// kernels).
const FxKernel* find_kernel(const FxKernelTable& table, std::string_view name);

}  // namespace fxopt
