#pragma once

#include <string_view>
#include <vector>

#include "core/result.h"
#include "runtime/abi/kernel.h"

namespace fxopt {

// Returns the instruction sets that this program has kernels for and this processor supports,
// widest first: "avx512" (x86-64-v4), "avx2" (x86-64-v3: with fma), "base". Results have the same
// bits with each. O(1).
std::vector<std::string_view> cpu_isas();

// Returns the kernels of that instruction set, or of the widest for "". Fails with kBadOptionValue
// if the program has no set of that name or the processor does not support it.
Result<const FxKernelTable*> cpu_kernels(std::string_view isa);

// Returns the kernel of that name in a table, or nullptr. O(log kernels).
const FxKernel* find_kernel(const FxKernelTable& table, std::string_view name);

}  // namespace fxopt
