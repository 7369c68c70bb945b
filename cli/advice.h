#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/report/memory/report.h"
#include "ir/cost/costs.h"
#include "ir/graph/module.h"
#include "ir/memory/footprint.h"

namespace fxopt {

// What is asked of a device's peaks: that memory does not run out, and no budget is broken.
struct AdviceGoal {
  size_t device = 0;        // of Footprint::devices
  bool expandable = false;  // the segments that peaks are of
  std::vector<std::pair<MemoryMetric, int64_t>> budgets;
};

// Tries recompute policies on copies of the module, the cheapest first and each once for all goals, and tells for each goal
// the first with which it is reached, else the one with the lowest of the peaks that are too high; nothing where none
// lowers it. O(policies * (passes + goals * devices)), with one copy at a time in memory.
std::vector<std::optional<Advice>> advise(const Footprint& footprint, MeasureOptions options, const CostSources& costs,
                                          const std::vector<AdviceGoal>& goals);

}  // namespace fxopt
