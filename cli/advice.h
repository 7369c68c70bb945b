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
  bool expandable = false;  // true: peaks with expandable segments; false: with classic ones
  std::vector<std::pair<MemoryMetric, int64_t>> budgets;
};

// Tries recompute policies on copies of the module, the cheapest policy first. Each policy runs
// once for all goals. Returns the first policy that reaches each goal. If no policy reaches a goal,
// returns the policy that lowers its peak most. If no policy lowers the peak of a goal, returns
// nothing for this goal. O(policies * (passes + goals * devices)), with one copy in memory at a
// time.
std::vector<std::optional<Advice>> advise(const Footprint& footprint, MeasureOptions options, const CostSources& costs,
                                          const std::vector<AdviceGoal>& goals);

}  // namespace fxopt
