// The kernels of a GPU. Each body in bodies.inc has a kernel fx_NAME_TYPE for every type in which
// the body computes. A block computes one unit of work, whose number is `first` plus the index of
// the block. Compile with --fmad=false. If a product and a sum must be rounded only once, the body
// calls fma().
#define FX_HAS_LANES 1

#include "runtime/cuda/gemm.h"
#include "runtime/cuda/lanes.h"
#include "runtime/ops/kernels/bodies.h"

namespace fxopt::kernels {

#define FX_BODY_AS(symbol, Type, most, ...)                                 \
  extern "C" __global__ void __launch_bounds__(most, 1)                     \
      symbol(FxCall call, uint32_t phase [[maybe_unused]], int64_t first) { \
    using T [[maybe_unused]] = Type;                                        \
    const BlockLanes lanes{};                                               \
    const int64_t unit [[maybe_unused]] = first + blockIdx.x;               \
    __VA_ARGS__;                                                            \
  }
#define FX_BODY_real(name, ...)                   \
  FX_BODY_AS(fx_##name##_f32, float, __VA_ARGS__) \
  FX_BODY_AS(fx_##name##_f64, double, __VA_ARGS__)
#define FX_BODY_all(name, ...) FX_BODY_real(name, __VA_ARGS__) FX_BODY_AS(fx_##name##_i64, int64_t, __VA_ARGS__)
#define FX_BODY(name, types, phases, units, workspace, lanes_of, ...) \
  FX_BODY_##types(name, most_of_##lanes_of, __VA_ARGS__)
#include "runtime/ops/kernels/bodies.inc"
#undef FX_BODY_AS
#undef FX_BODY_real
#undef FX_BODY_all

}  // namespace fxopt::kernels
