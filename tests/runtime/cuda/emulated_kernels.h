#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/abi/kernel.h"

namespace fxopt {

// A kernel of runtime/cuda/kernels.cu, compiled by g++.
struct EmulatedKernel {
  std::string_view symbol;  // "fx_add_f32"
  void (*kernel)(FxCall call, uint32_t phase, int64_t first);
  uint32_t most_lanes;  // the kernel's __launch_bounds__
};
const EmulatedKernel* find_emulated_kernel(std::string_view symbol);

// The kernels of a GPU as a table for the executor of the CPU. Each unit is a block of emulated
// threads. Threads of a block run in an order drawn from `shuffle`, or in the order of their
// indices if `shuffle` is 0.
const FxKernelTable& emulated_table();
void set_emulated_order(uint64_t shuffle);

}  // namespace fxopt
