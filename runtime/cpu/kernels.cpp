// The kernels of a CPU, compiled once for each instruction set (FX_ISA names it). An object exports its table and nothing else: all
// functions have internal linkage, nothing of the C++ library is used, and the compiler must not join products and sums.

#include "runtime/cpu/gemm.h"
#include "runtime/ops/kernels/copy.h"
#include "runtime/ops/kernels/index.h"
#include "runtime/ops/kernels/pointwise.h"
#include "runtime/ops/kernels/random.h"
#include "runtime/ops/kernels/row.h"

namespace fxopt::kernels {
namespace {

template <class Visit>
void by_compute(const FxCall& call, const Visit& visit) {
  if (call.compute == FX_COMPUTE_FLOAT) visit(float{});
  if (call.compute == FX_COMPUTE_DOUBLE) visit(double{});
  if (call.compute == FX_COMPUTE_INT64) visit(int64_t{});
}
template <class Visit>
void by_real(const FxCall& call, const Visit& visit) {
  if (call.compute == FX_COMPUTE_FLOAT) visit(float{});
  if (call.compute == FX_COMPUTE_DOUBLE) visit(double{});
}

using Units = int64_t (*)(const FxCall*, uint32_t);
using Bytes = int64_t (*)(const FxCall*);
using Run = void (*)(const FxCall*, uint32_t, int64_t, int64_t);

int64_t result_tiles(const FxCall* call, uint32_t) { return num_tiles(num_elements(call->views[0])); }
template <int64_t (*units)(const FxCall&, uint32_t)>
int64_t units_by(const FxCall* call, uint32_t phase) {
  return units(*call, phase);
}
int64_t one_unit(const FxCall*, uint32_t) { return 1; }

template <class Body>
void run_pointwise(const FxCall* call, uint32_t, int64_t first, int64_t end) {
  by_compute(*call, [&](auto type) {
    for (int64_t unit = first; unit < end; ++unit) pointwise_unit<decltype(type), Body>(OneLane{}, *call, unit);
  });
}
template <class Body>
void run_real_pointwise(const FxCall* call, uint32_t, int64_t first, int64_t end) {
  by_real(*call, [&](auto type) {
    for (int64_t unit = first; unit < end; ++unit) pointwise_unit<decltype(type), Body>(OneLane{}, *call, unit);
  });
}

#define FX_RUN(name, by, body)                                                \
  void name(const FxCall* call, uint32_t phase, int64_t first, int64_t end) { \
    by(*call, [&](auto type) {                                                \
      using T [[maybe_unused]] = decltype(type);                              \
      for (int64_t unit = first; unit < end; ++unit) body;                    \
    });                                                                       \
    (void)phase;                                                              \
  }
FX_RUN(run_copy, by_compute, copy_unit<T>(OneLane{}, *call, phase, unit))
FX_RUN(run_cat, by_compute, cat_unit<T>(OneLane{}, *call, phase, unit))
FX_RUN(run_slice_backward, by_compute, slice_backward_unit<T>(OneLane{}, *call, phase, unit))
FX_RUN(run_fill, by_compute, fill_unit<T>(OneLane{}, *call, phase, unit))
FX_RUN(run_iota, by_compute, iota_unit<T>(OneLane{}, *call, phase, unit))
FX_RUN(run_sum, by_compute, (reduction_unit<SumFold, T>(*call, phase, unit)))
FX_RUN(run_amax, by_compute, (reduction_unit<MaxFold, T>(*call, phase, unit)))
FX_RUN(run_softmax, by_real, (softmax_unit<T, false>(*call, unit)))
FX_RUN(run_log_softmax, by_real, (softmax_unit<T, true>(*call, unit)))
FX_RUN(run_softmax_backward, by_real, (softmax_backward_unit<T, false>(*call, unit)))
FX_RUN(run_log_softmax_backward, by_real, (softmax_backward_unit<T, true>(*call, unit)))
FX_RUN(run_layer_norm, by_real, layer_norm_unit<T>(*call, unit))
FX_RUN(run_layer_norm_backward, by_real,
       (phase == 0 ? layer_norm_backward_row<T>(*call, unit) : layer_norm_backward_columns<T>(*call, unit)))
FX_RUN(run_gather_rows, by_compute, gather_rows_unit<T>(*call, unit))
FX_RUN(run_add_rows, by_compute, (phase == 0 ? add_rows_unit<T>(*call, unit) : add_rows_store<T>(*call, unit)))
FX_RUN(run_nll_loss, by_real, (static_cast<void>(unit), nll_loss_unit<T>(*call)))
FX_RUN(run_nll_loss_backward, by_real, nll_loss_backward_unit<T>(*call, unit))
FX_RUN(run_dropout, by_real, dropout_unit<T>(OneLane{}, *call, unit))
FX_RUN(run_gemm, by_compute, gemm_unit<T>(*call, unit))
#undef FX_RUN

// Partial sums are in the type that bodies compute in: 4 or 8 bytes.
int64_t sum_workspace(const FxCall* call) {
  return call->compute == FX_COMPUTE_FLOAT ? reduction_workspace<float>(*call) : reduction_workspace<double>(*call);
}
int64_t add_workspace(const FxCall* call) {
  return call->compute == FX_COMPUTE_FLOAT ? add_rows_workspace<float>(*call) : add_rows_workspace<double>(*call);
}

// What by_real() and by_compute() visit.
constexpr uint32_t kReal = 1u << FX_COMPUTE_FLOAT | 1u << FX_COMPUTE_DOUBLE;
constexpr uint32_t kAll = kReal | 1u << FX_COMPUTE_INT64;

// Name, phases, types, units, workspace, run.
constexpr FxKernel kUnsorted[] = {
#define FX_POINTWISE(name, Body) {name, 1, kAll, result_tiles, nullptr, run_pointwise<Body>},
#define FX_REAL_POINTWISE(name, Body) {name, 1, kReal, result_tiles, nullptr, run_real_pointwise<Body>},
#include "runtime/ops/kernels/pointwise.inc"
    {"add_rows", 2, kAll, units_by<add_rows_units>, add_workspace, run_add_rows},
    {"addmm", 1, kAll, gemm_units, nullptr, run_gemm},
    {"amax", 2, kAll, units_by<reduction_units>, sum_workspace, run_amax},
    {"cat", 1, kAll, units_by<cat_units>, nullptr, run_cat},
    {"copy", 1, kAll, units_by<copy_units>, nullptr, run_copy},
    {"dropout", 1, kReal, result_tiles, nullptr, run_dropout},
    {"fill", 1, kAll, result_tiles, nullptr, run_fill},
    {"gather_rows", 1, kAll, units_by<gather_rows_units>, nullptr, run_gather_rows},
    {"iota", 1, kAll, result_tiles, nullptr, run_iota},
    {"layer_norm", 1, kReal, units_by<row_units>, nullptr, run_layer_norm},
    {"layer_norm_backward", 2, kReal, units_by<layer_norm_backward_units>, nullptr, run_layer_norm_backward},
    {"log_softmax", 1, kReal, units_by<row_units>, nullptr, run_log_softmax},
    {"log_softmax_backward", 1, kReal, units_by<row_units>, nullptr, run_log_softmax_backward},
    {"mm", 1, kAll, gemm_units, nullptr, run_gemm},
    {"nll_loss", 1, kReal, one_unit, nullptr, run_nll_loss},
    {"nll_loss_backward", 1, kReal, units_by<nll_loss_backward_units>, nullptr, run_nll_loss_backward},
    {"slice_backward", 2, kAll, units_by<slice_backward_units>, nullptr, run_slice_backward},
    {"softmax", 1, kReal, units_by<row_units>, nullptr, run_softmax},
    {"softmax_backward", 1, kReal, units_by<row_units>, nullptr, run_softmax_backward},
    {"sum", 2, kAll, units_by<reduction_units>, sum_workspace, run_sum},
};

constexpr bool is_before(const char* a, const char* b) {
  for (; *a == *b && *a != 0; ++a) ++b;
  return *a < *b;
}

// By name, as tables are searched.
struct Sorted {
  FxKernel kernels[sizeof(kUnsorted) / sizeof(kUnsorted[0])] = {};
  constexpr Sorted() {
    int count = 0;
    for (const FxKernel& kernel : kUnsorted) {
      int at = count++;
      for (; at > 0 && is_before(kernel.name, kernels[at - 1].name); --at) kernels[at] = kernels[at - 1];
      kernels[at] = kernel;
    }
  }
};
constexpr Sorted kSorted;

#define FX_TEXT_OF(name) #name
#define FX_TEXT(name) FX_TEXT_OF(name)
constexpr FxKernelTable kTable = {FX_KERNEL_VERSION, sizeof(kUnsorted) / sizeof(kUnsorted[0]), FX_TEXT(FX_ISA),
                                  kSorted.kernels};

}  // namespace
}  // namespace fxopt::kernels

#define FX_JOIN_OF(a, b) a##b
#define FX_JOIN(a, b) FX_JOIN_OF(a, b)
extern "C" const FxKernelTable* FX_JOIN(fxopt_cpu_kernels_, FX_ISA)();
extern "C" const FxKernelTable* FX_JOIN(fxopt_cpu_kernels_, FX_ISA)() { return &fxopt::kernels::kTable; }
