#include "tests/runtime/cuda/emulated_kernels.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>

// The keywords of CUDA must be defined before the kernels.
// clang-format off
#include "tests/runtime/cuda/emulation.h"
#include "runtime/cuda/kernels.cu"
// clang-format on

namespace fxopt {
namespace {

using namespace kernels;

constexpr EmulatedKernel kEmulated[] = {
#define FX_BODY_real(name, most) \
  {"fx_" #name "_f32", fx_##name##_f32, most}, {"fx_" #name "_f64", fx_##name##_f64, most},
#define FX_BODY_all(name, most) FX_BODY_real(name, most){"fx_" #name "_i64", fx_##name##_i64, most},
#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...) FX_BODY_##types(name, most_of_##lanes_of)
#include "runtime/ops/kernels/bodies.inc"
#undef FX_BODY_real
#undef FX_BODY_all
};

std::atomic<uint64_t> order = 0;

void run_units(void (*kernel)(FxCall, uint32_t, int64_t), uint32_t lanes, const FxCall& call, uint32_t phase,
               int64_t first, int64_t end) {
  const auto blocks = static_cast<unsigned>(end - first);
  try {
    emulation::launch({{blocks, 1, 1}, {lanes, 1, 1}, order}, [&] { kernel(call, phase, first); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulated kernel: %s\n", error.what());
    std::abort();
  }
}

#define FX_RUN_AS(name, suffix, type, lanes_of) \
  if (call->compute == type) run_units(fx_##name##_##suffix, lanes_of(*call, phase), *call, phase, first, end);
#define FX_RUN_real(name, lanes_of) \
  FX_RUN_AS(name, f32, FX_COMPUTE_FLOAT, lanes_of) FX_RUN_AS(name, f64, FX_COMPUTE_DOUBLE, lanes_of)
#define FX_RUN_all(name, lanes_of) FX_RUN_real(name, lanes_of) FX_RUN_AS(name, i64, FX_COMPUTE_INT64, lanes_of)
#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...) \
  void run_##name(const FxCall* call, uint32_t phase, int64_t first, int64_t end) { FX_RUN_##types(name, lanes_of) }
#include "runtime/ops/kernels/bodies.inc"

constexpr FxKernel kUnsorted[] = {
#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...) \
  {#name, phases, types_of_##types, units_by<units>, workspace_by<workspace>, run_##name, lanes_by<lanes_of>},
#include "runtime/ops/kernels/bodies.inc"
};
constexpr int kCount = sizeof(kUnsorted) / sizeof(kUnsorted[0]);
constexpr SortedKernels<kCount> kSorted(kUnsorted);
constexpr FxKernelTable kTable = {FX_KERNEL_VERSION, kCount, "emulated", kSorted.kernels};

}  // namespace

const EmulatedKernel* find_emulated_kernel(std::string_view symbol) {
  for (const EmulatedKernel& kernel : kEmulated) {
    if (kernel.symbol == symbol) return &kernel;
  }
  return nullptr;
}

const FxKernelTable& emulated_table() { return kTable; }
void set_emulated_order(uint64_t shuffle) { order = shuffle; }

}  // namespace fxopt
