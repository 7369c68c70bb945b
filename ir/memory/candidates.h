#pragma once

#include <cstdint>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/cost/costs.h"
#include "ir/graph/graph.h"
#include "ir/memory/memory.h"
#include "ir/step/phases.h"

namespace fxopt {

// A call whose saved values could be computed again in backward, by itself.
struct RecomputeCandidate {
  NodeId node;
  int64_t freed = 0;  // bytes of its storages that are live at the place and no longer would be
  int64_t kept = 0;   // bytes of what it reads that would be saved in their stead; less than `freed`
  Cost work;          // of one more run

  int64_t gain() const { return freed - kept; }
};

// What could go from `place` of the schedule, by recomputing one call at a time: calls made in forward that can be
// repeated and whose storages on `device` wait there for backward, between their last reader in forward and their first
// in backward. Cheapest first, by the seconds of Cost for each byte gained, then its operations, then the bytes it moves;
// those of unknown work last; ties by schedule position. Exact for each by itself: what two gain together may be more
// or less. O(nodes + edges + candidates log candidates).
std::vector<RecomputeCandidate> recompute_candidates(const Graph& graph, const StorageMap& storages,
                                                     const PhaseMap& phases, const MemoryReport& memory,
                                                     StringId device, uint32_t place, CostTable& costs);

}  // namespace fxopt
