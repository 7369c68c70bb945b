#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/abi/plan.h"
#include "runtime/plan/evaluate.h"

namespace fxopt {

inline constexpr size_t kNumRoles = FX_ROLE_WORKSPACE + 1;

// The most bytes of one device that a plan has at once: inputs and constants, and what its steps make.
struct PlanPeak {
  int64_t bytes = 0;
  uint32_t step = 0;                         // the first at which they are reached
  std::array<int64_t, kNumRoles> by_role{};  // by FxRole, there
};

// Of the storages whose size is known; `device` as in FxStorage. O(storages + steps).
PlanPeak peak_of(const FxPlan& plan, const ScalarValues& values, uint32_t device);

}  // namespace fxopt
