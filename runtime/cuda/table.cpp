#include "runtime/cuda/table.h"

#include <cstring>

#include "runtime/cuda/gemm.h"
#include "runtime/ops/kernels/bodies.h"

namespace fxopt::kernels {
namespace {

constexpr FxKernel kUnsorted[] = {
#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...) \
  {#name, phases, types_of_##types, units_by<units>, workspace_by<workspace>, nullptr, lanes_by<lanes_of>},
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
