#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/abi/plan.h"
#include "runtime/plan/evaluate.h"

namespace fxopt {

inline constexpr size_t kNumRoles = FX_ROLE_WORKSPACE + 1;

// The largest number of bytes that are live at once on one device. These bytes include inputs,
// constants and results of steps.
struct PlanPeak {
  int64_t bytes = 0;
  uint32_t step = 0;                         // the first step of the plan that reaches the peak
  std::array<int64_t, kNumRoles> by_role{};  // live bytes at `step`, by FxRole
};

// Returns the peak of one device. `device` is the FxStorage::device of the counted storages.
// Storages of unknown size are left out. O(storages + steps).
PlanPeak peak_of(const FxPlan& plan, const ScalarValues& values, uint32_t device);

}  // namespace fxopt
