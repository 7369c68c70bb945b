#pragma once

#include <cstdint>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/cost/costs.h"
#include "ir/graph/graph.h"
#include "ir/memory/memory.h"
#include "ir/step/phases.h"

namespace fxopt {

// A call in the forward pass. Its results are saved for the backward pass, but the backward pass
// could recompute the results instead.
struct RecomputeCandidate {
  NodeId node;
  int64_t freed = 0;  // bytes that recomputing the call frees at the given place of the schedule
  int64_t kept = 0;   // bytes of the operands that must be saved instead; always less than `freed`
  Cost work;          // cost of executing the call once more

  int64_t gain() const { return freed - kept; }
};

// Returns the calls in forward whose recomputation would free memory at `place` of the schedule.
// Each call is considered separately. A call is listed under these conditions:
// - The call can be repeated. Collectives and recomputed copies are left out.
// - The call creates a storage on `device` that is live at `place` only because backward reads the
//   storage later. The last use in forward is before `place`, and the first reader in backward is
//   after `place`.
//
// The calls are sorted by three keys, with the smallest first:
// - The first key is `work.seconds / gain()`.
// - If the first keys are equal, the second key decides: `work.flops / gain()`.
// - If the second keys are equal as well, the third key decides: `work.bytes / gain()`.
//
// Calls of unknown cost come last. Calls with equal keys are in schedule order.
//
// `freed` and `kept` of a call are exact under two conditions:
// - No other call is recomputed.
// - The sizes of the call's results are known.
// Two calls together may gain more or fewer bytes than the sum of both gains.
//
// O(nodes + edges + candidates log candidates).
std::vector<RecomputeCandidate> recompute_candidates(const Graph& graph, const StorageMap& storages,
                                                     const PhaseMap& phases, const MemoryReport& memory,
                                                     StringId device, uint32_t place, CostTable& costs);

}  // namespace fxopt
