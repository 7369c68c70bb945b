// Includes the kernel bodies that bodies.inc lists. Matrix products are the exception, because each
// device has its own gemm.h. This header also has the helpers for the kernel table of a device.
#pragma once

#include "runtime/ops/kernels/copy.h"
#include "runtime/ops/kernels/index.h"
#include "runtime/ops/kernels/pointwise.h"
#include "runtime/ops/kernels/random.h"
#include "runtime/ops/kernels/row.h"

namespace fxopt::kernels {
namespace {

// The values of the parameter `types` of FX_BODY, with one bit for each FxCompute.
constexpr uint32_t types_of_real = 1u << FX_COMPUTE_FLOAT | 1u << FX_COMPUTE_DOUBLE;
constexpr uint32_t types_of_all = types_of_real | 1u << FX_COMPUTE_INT64;

// Adapters for the function pointers in FxKernel. These pointers take the call as `const FxCall*`.
// The functions that bodies.inc lists take the call as `const FxCall&`.
template <int64_t (*units)(const FxCall&, uint32_t)>
int64_t units_by(const FxCall* call, uint32_t phase) {
  return units(*call, phase);
}
template <int64_t (*workspace)(const FxCall&)>
int64_t workspace_by(const FxCall* call) {
  return workspace(*call);
}
template <uint32_t (*lanes)(const FxCall&, uint32_t)>
uint32_t lanes_by(const FxCall* call, uint32_t phase) {
  return lanes(*call, phase);
}

constexpr bool is_before(const char* a, const char* b) {
  for (; *a == *b && *a != 0; ++a) ++b;
  return *a < *b;
}

// Kernels sorted by name, so that a table can be searched.
template <int count>
struct SortedKernels {
  FxKernel kernels[count] = {};
  constexpr explicit SortedKernels(const FxKernel* unsorted) {
    for (int i = 0; i < count; ++i) {
      int at = i;
      for (; at > 0 && is_before(unsorted[i].name, kernels[at - 1].name); --at) kernels[at] = kernels[at - 1];
      kernels[at] = unsorted[i];
    }
  }
};

}  // namespace
}  // namespace fxopt::kernels
