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

// Goals for a device's peaks: memory does not run out, and no budget is broken.
struct AdviceGoal {
  size_t device = 0;        // index into Footprint::devices
  bool expandable = false;  // the kind of segments of the peaks
  std::vector<std::pair<MemoryMetric, int64_t>> budgets;
};

// Tries recompute policies on copies of the module, the cheapest first, and each once for all
// goals. Returns for each goal the first policy that reaches it. If none does, returns the policy
// with the lowest of the peaks that are too high, or nothing if no policy lowers a peak. O(policies
// * (passes + goals * devices)), with one copy at a time in memory.
std::vector<std::optional<Advice>> advise(const Footprint& footprint, MeasureOptions options, const CostSources& costs,
                                          const std::vector<AdviceGoal>& goals);

}  // namespace fxopt
