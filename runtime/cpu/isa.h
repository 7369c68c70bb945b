#pragma once

#include <string_view>
#include <vector>

#include "core/result.h"
#include "runtime/abi/kernel.h"

namespace fxopt {

// The instruction sets that this program has kernels for and this processor runs, the widest first: "avx512" (x86-64-v4), "avx2"
// (x86-64-v3: with fma), "base". Results are the same bits with each. O(1).
std::vector<std::string_view> cpu_isas();

// The kernels of that instruction set; of the widest for "". Errors: kBadOptionValue where the program has none of that name or the
// processor does not run it.
Result<const FxKernelTable*> cpu_kernels(std::string_view isa);

// The kernel of that name in a table, or nullptr. O(log kernels).
const FxKernel* find_kernel(const FxKernelTable& table, std::string_view name);

}  // namespace fxopt
