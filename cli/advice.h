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

// The goals for one device's peaks: memory does not run out, and no peak exceeds its budget.
struct AdviceGoal {
  size_t device = 0;        // index into Footprint::devices
  bool expandable = false;  // true if the allocator uses expandable segments
  std::vector<std::pair<MemoryMetric, int64_t>> budgets;
};

// Tries recompute policies on copies of the module, the cheapest policy first. Each policy is
// applied at most once, even if there are several goals. Returns one entry for each goal: the first
// policy that reaches this goal. If no policy reaches the goal, the entry is the policy with the
// lowest peak on the goal's device. If no policy lowers the peak of this device, the entry is
// empty. O(policies * (passes + goals * devices)), with one copy in memory at a time.
std::vector<std::optional<Advice>> advise(const Footprint& footprint, MeasureOptions options, const CostSources& costs,
                                          const std::vector<AdviceGoal>& goals);

}  // namespace fxopt
