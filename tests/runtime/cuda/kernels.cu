// Compiled, not run: every body of the kernels, in float, as code of a GPU. A block of kLanes threads shares a unit where the body knows lanes; else
// a thread has a unit of its own.

#include "runtime/ops/kernels/copy.h"
#include "runtime/ops/kernels/index.h"
#include "runtime/ops/kernels/pointwise.h"
#include "runtime/ops/kernels/random.h"
#include "runtime/ops/kernels/row.h"

namespace fxopt::kernels {
namespace {

struct BlockLanes {
  static constexpr int kCount = 256;
  __device__ static int lane() { return static_cast<int>(threadIdx.x); }
};

template <class Body, class T>
__global__ void pointwise(const FxCall* call) {
  pointwise_unit<T, Body>(BlockLanes{}, *call, blockIdx.x);
}

#define FX_GLOBAL(name, body)                                                        \
  template <class T>                                                                 \
  __global__ void name(const FxCall* pointer, uint32_t phase, int64_t units) {       \
    const FxCall& call = *pointer;                                                   \
    [[maybe_unused]] const BlockLanes lanes{};                                       \
    [[maybe_unused]] const int64_t block = blockIdx.x;                               \
    const int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;             \
    if (unit < units) body;                                                          \
    (void)phase;                                                                     \
  }
FX_GLOBAL(copy, copy_unit<T>(lanes, call, phase, block))
FX_GLOBAL(cat, cat_unit<T>(lanes, call, phase, block))
FX_GLOBAL(slice_backward, slice_backward_unit<T>(lanes, call, phase, block))
FX_GLOBAL(fill, fill_unit<T>(lanes, call, phase, block))
FX_GLOBAL(iota, iota_unit<T>(lanes, call, phase, block))
FX_GLOBAL(dropout, dropout_unit<T>(lanes, call, block))
FX_GLOBAL(sum, (reduction_unit<SumFold, T>(call, phase, unit)))
FX_GLOBAL(amax, (reduction_unit<MaxFold, T>(call, phase, unit)))
FX_GLOBAL(softmax, (softmax_unit<T, false>(call, unit)))
FX_GLOBAL(log_softmax, (softmax_unit<T, true>(call, unit)))
FX_GLOBAL(softmax_backward, (softmax_backward_unit<T, false>(call, unit)))
FX_GLOBAL(log_softmax_backward, (softmax_backward_unit<T, true>(call, unit)))
FX_GLOBAL(layer_norm, layer_norm_unit<T>(call, unit))
FX_GLOBAL(layer_norm_backward,
          (phase == 0 ? layer_norm_backward_row<T>(call, unit) : layer_norm_backward_columns<T>(call, unit)))
FX_GLOBAL(gather_rows, gather_rows_unit<T>(call, unit))
FX_GLOBAL(add_rows, (phase == 0 ? add_rows_unit<T>(call, unit) : add_rows_store<T>(call, unit)))
FX_GLOBAL(nll_loss, nll_loss_unit<T>(call))
FX_GLOBAL(nll_loss_backward, nll_loss_backward_unit<T>(call, unit))

template <class T>
void instantiate_real() {
  [[maybe_unused]] const void* all[] = {
#define FX_POINTWISE(name, Body) (const void*)pointwise<Body, T>,
#define FX_REAL_POINTWISE(name, Body) (const void*)pointwise<Body, T>,
#include "runtime/ops/kernels/pointwise.inc"
      
      (const void*)copy<T>,                (const void*)cat<T>,                  (const void*)slice_backward<T>,
      (const void*)fill<T>,                (const void*)iota<T>,                 (const void*)dropout<T>,
      (const void*)sum<T>,                 (const void*)amax<T>,                 (const void*)softmax<T>,
      (const void*)log_softmax<T>,         (const void*)softmax_backward<T>,     (const void*)log_softmax_backward<T>,
      (const void*)layer_norm<T>,          (const void*)layer_norm_backward<T>,  (const void*)gather_rows<T>,
      (const void*)add_rows<T>,            (const void*)nll_loss<T>,             (const void*)nll_loss_backward<T>};
}

}  // namespace
}  // namespace fxopt::kernels

void fxopt_instantiate_kernels() {
  fxopt::kernels::instantiate_real<float>();
}
