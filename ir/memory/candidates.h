#pragma once

#include <cstdint>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/cost/costs.h"
#include "ir/graph/graph.h"
#include "ir/memory/memory.h"
#include "ir/step/phases.h"

namespace fxopt {

// A call in forward whose saved values backward could recompute.
struct RecomputeCandidate {
  NodeId node;
  int64_t freed = 0;  // bytes of its storages live at the place that recomputing would free
  int64_t kept = 0;   // bytes of its operands saved instead; less than `freed`
  Cost work;          // one more run of the call

  int64_t gain() const { return freed - kept; }
};

// Returns the calls in forward whose recomputation would free memory at `place` of the schedule,
// each considered alone. Each such call can be repeated. Its storages on `device` are live at
// `place` only for backward, after their last reader in forward and before their first in backward.
//
// Sorted by seconds of Cost per byte gained, then by operations and by bytes moved per byte gained.
// Calls of unknown cost come last; ties go by schedule position. Exact for each call alone: two
// together may gain more or less than the sum. O(nodes + edges + candidates log candidates).
std::vector<RecomputeCandidate> recompute_candidates(const Graph& graph, const StorageMap& storages,
                                                     const PhaseMap& phases, const MemoryReport& memory,
                                                     StringId device, uint32_t place, CostTable& costs);

}  // namespace fxopt
