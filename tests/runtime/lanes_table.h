#pragma once

#include <vector>

#include "runtime/abi/kernel.h"

namespace fxopt {

// The kernels with the bodies that know lanes run by 256 of them, one after the other in an order that is no order, as the threads of
// a block of a GPU share a unit. A lane that reads what another one writes would give other bits.
struct LanesTable {
  LanesTable();
  std::vector<FxKernel> kernels;
  FxKernelTable table;
  size_t by_lanes = 0;  // kernels that lanes share
};

}  // namespace fxopt
