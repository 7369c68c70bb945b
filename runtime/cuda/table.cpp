#include "runtime/cuda/table.h"

#include <cstring>

#include "runtime/cuda/gemm.h"
#include "runtime/ops/kernels/bodies.h"

namespace fxopt::kernels {
namespace {

#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...)                         \
  int64_t units_of_##name(const FxCall* call, uint32_t phase) { return units(*call, phase); } \
  int64_t workspace_of_##name(const FxCall* call) { return workspace(*call); }                \
  uint32_t lanes_of_##name(const FxCall* call, uint32_t phase) { return lanes_of(*call, phase); }
#include "runtime/ops/kernels/bodies.inc"

constexpr FxKernel kUnsorted[] = {
#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...) \
  {#name, phases, types_of_##types, units_of_##name, workspace_of_##name, nullptr, lanes_of_##name},
#include "runtime/ops/kernels/bodies.inc"
};
constexpr int kCount = sizeof(kUnsorted) / sizeof(kUnsorted[0]);
constexpr SortedKernels<kCount> kSorted(kUnsorted);
constexpr FxKernelTable kTable = {FX_KERNEL_VERSION, kCount, "cuda", kSorted.kernels};

}  // namespace
}  // namespace fxopt::kernels

namespace fxopt::cuda {

const FxKernelTable& kernel_table() { return kernels::kTable; }

const FxKernel* find_kernel(const char* name) {
  for (uint32_t i = 0; i < kernels::kTable.num_kernels; ++i) {
    if (std::strcmp(kernels::kTable.kernels[i].name, name) == 0) return &kernels::kTable.kernels[i];
  }
  return nullptr;
}

}  // namespace fxopt::cuda
