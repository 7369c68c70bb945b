#include "tests/runtime/lanes_table.h"

#include <string_view>

#include "runtime/cpu/isa.h"
#include "runtime/ops/kernels/copy.h"
#include "runtime/ops/kernels/pointwise.h"
#include "runtime/ops/kernels/random.h"

namespace fxopt {
namespace {

using namespace kernels;

struct ManyLanes {
  static constexpr int kCount = 256;
  static inline thread_local int current = 0;
  static int lane() { return current; }
};

template <class Body>
void each_lane(const Body& body) {
  for (int i = 0; i < ManyLanes::kCount; ++i) {
    ManyLanes::current = (i * 77 + 13) % ManyLanes::kCount;  // 77 is odd: each lane once
    body(ManyLanes{});
  }
}

template <class Unit>
void run_units(const FxCall* call, int64_t first, int64_t end, const Unit& body) {
  for (int64_t unit = first; unit < end; ++unit) {
    each_lane([&](ManyLanes lanes) {
      if (call->compute == FX_COMPUTE_FLOAT) body(lanes, float{}, unit);
      if (call->compute == FX_COMPUTE_DOUBLE) body(lanes, double{}, unit);
      if constexpr (requires { body(lanes, int64_t{}, unit); }) {
        if (call->compute == FX_COMPUTE_INT64) body(lanes, int64_t{}, unit);
      }
    });
  }
}

template <class Body>
void run_pointwise(const FxCall* call, uint32_t, int64_t first, int64_t end) {
  run_units(call, first, end, [&](ManyLanes lanes, auto type, int64_t unit) {
    pointwise_unit<decltype(type), Body>(lanes, *call, unit);
  });
}

template <class T>
concept Real = !kIsInteger<T>;

template <class Body>
void run_real_pointwise(const FxCall* call, uint32_t, int64_t first, int64_t end) {
  run_units(call, first, end,
            [&]<Real T>(ManyLanes lanes, T, int64_t unit) { pointwise_unit<T, Body>(lanes, *call, unit); });
}

void run_copy(const FxCall* call, uint32_t phase, int64_t first, int64_t end) {
  run_units(call, first, end,
            [&](ManyLanes lanes, auto type, int64_t unit) { copy_unit<decltype(type)>(lanes, *call, phase, unit); });
}
void run_cat(const FxCall* call, uint32_t phase, int64_t first, int64_t end) {
  run_units(call, first, end,
            [&](ManyLanes lanes, auto type, int64_t unit) { cat_unit<decltype(type)>(lanes, *call, phase, unit); });
}
void run_slice_backward(const FxCall* call, uint32_t phase, int64_t first, int64_t end) {
  run_units(call, first, end, [&](ManyLanes lanes, auto type, int64_t unit) {
    slice_backward_unit<decltype(type)>(lanes, *call, phase, unit);
  });
}
void run_fill(const FxCall* call, uint32_t phase, int64_t first, int64_t end) {
  run_units(call, first, end,
            [&](ManyLanes lanes, auto type, int64_t unit) { fill_unit<decltype(type)>(lanes, *call, phase, unit); });
}
void run_iota(const FxCall* call, uint32_t phase, int64_t first, int64_t end) {
  run_units(call, first, end,
            [&](ManyLanes lanes, auto type, int64_t unit) { iota_unit<decltype(type)>(lanes, *call, phase, unit); });
}
void run_dropout(const FxCall* call, uint32_t, int64_t first, int64_t end) {
  run_units(call, first, end, [&]<Real T>(ManyLanes lanes, T, int64_t unit) { dropout_unit<T>(lanes, *call, unit); });
}

struct Named {
  std::string_view name;
  void (*run)(const FxCall*, uint32_t, int64_t, int64_t);
};
constexpr Named kByLanes[] = {
#define FX_POINTWISE(name, Body) {name, run_pointwise<kernels::Body>},
#define FX_REAL_POINTWISE(name, Body) {name, run_real_pointwise<kernels::Body>},
#include "runtime/ops/kernels/pointwise.inc"
    {"cat", run_cat},   {"copy", run_copy}, {"dropout", run_dropout},
    {"fill", run_fill}, {"iota", run_iota}, {"slice_backward", run_slice_backward},
};

}  // namespace

LanesTable::LanesTable() : table(**cpu_kernels("base")) {
  kernels.assign(table.kernels, table.kernels + table.num_kernels);
  for (FxKernel& kernel : kernels) {
    for (const Named& named : kByLanes) {
      if (kernel.name != named.name) continue;
      kernel.run = named.run;
      ++by_lanes;
    }
  }
  table.isa = "lanes";
  table.kernels = kernels.data();
}

}  // namespace fxopt
