// The kernels of a CPU. This file is compiled once for each instruction set, and FX_ISA is the name
// of the set. An object exports only its table, so all functions have internal linkage and the C++
// library is not used. The compiler must not fuse products and sums.

#include "runtime/cpu/gemm.h"
#include "runtime/ops/kernels/bodies.h"

namespace fxopt::kernels {
namespace {

template <class Visit>
void by_real(const FxCall& call, const Visit& visit) {
  if (call.compute == FX_COMPUTE_FLOAT) visit(float{});
  if (call.compute == FX_COMPUTE_DOUBLE) visit(double{});
}
template <class Visit>
void by_all(const FxCall& call, const Visit& visit) {
  by_real(call, visit);
  if (call.compute == FX_COMPUTE_INT64) visit(int64_t{});
}

#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...)                                   \
  void run_##name(const FxCall* pointer, uint32_t phase [[maybe_unused]], int64_t first, int64_t end) { \
    constexpr OneLane lanes;                                                                            \
    const FxCall& call = *pointer;                                                                      \
    by_##types(call, [&](auto type) {                                                                   \
      using T [[maybe_unused]] = decltype(type);                                                        \
      for (int64_t unit = first; unit < end; ++unit) __VA_ARGS__;                                       \
    });                                                                                                 \
  }
#include "runtime/ops/kernels/bodies.inc"

constexpr FxKernel kUnsorted[] = {
#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...) \
  {#name, phases, types_of_##types, units_by<units>, workspace_by<workspace>, run_##name, nullptr},
#include "runtime/ops/kernels/bodies.inc"
};
constexpr int kCount = sizeof(kUnsorted) / sizeof(kUnsorted[0]);
constexpr SortedKernels<kCount> kSorted(kUnsorted);

#define FX_TEXT_OF(name) #name
#define FX_TEXT(name) FX_TEXT_OF(name)
constexpr FxKernelTable kTable = {FX_KERNEL_VERSION, kCount, FX_TEXT(FX_ISA), kSorted.kernels};

}  // namespace
}  // namespace fxopt::kernels

#define FX_JOIN_OF(a, b) a##b
#define FX_JOIN(a, b) FX_JOIN_OF(a, b)
extern "C" const FxKernelTable* FX_JOIN(fxopt_cpu_kernels_, FX_ISA)();
extern "C" const FxKernelTable* FX_JOIN(fxopt_cpu_kernels_, FX_ISA)() { return &fxopt::kernels::kTable; }
