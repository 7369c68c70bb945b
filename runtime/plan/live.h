#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/abi/plan.h"
#include "runtime/plan/evaluate.h"

namespace fxopt {

inline constexpr size_t kNumRoles = FX_ROLE_WORKSPACE + 1;

// The most bytes of one device live at once in a plan: inputs, constants, and the results of its
// steps.
struct PlanPeak {
  int64_t bytes = 0;
  uint32_t step = 0;                         // the first step that reaches the peak
  std::array<int64_t, kNumRoles> by_role{};  // by FxRole, at that step
};

// Counts the storages of known size; `device` as in FxStorage. O(storages + steps).
PlanPeak peak_of(const FxPlan& plan, const ScalarValues& values, uint32_t device);

}  // namespace fxopt
