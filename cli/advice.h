#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/report/memory.h"
#include "ir/device/profile.h"
#include "ir/graph/module.h"
#include "ir/memory/footprint.h"

namespace fxopt {

// What is asked of a device's peaks: that memory does not run out, and no budget is broken.
struct AdviceGoal {
  bool expandable = false;  // the segments that peaks are of
  std::vector<std::pair<MemoryMetric, int64_t>> budgets;
};

// Tries recompute policies on copies of the module, the cheapest first, and tells the first with which the goal is
// reached on `measured`'s device, else the one with the lowest requested peak. Nothing where none lowers it. O(policies
// * passes).
std::optional<Advice> advise(const Footprint& footprint, const DeviceFootprint& measured, const MeasureOptions& options,
                             const DeviceProfile& work, const AdviceGoal& goal);

}  // namespace fxopt
