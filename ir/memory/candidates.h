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
// - The call's storages on `device` are live at `place` only for backward. The last reader in
//   forward is before `place`, and the first reader in backward is after `place`.
//
// The calls are sorted in ascending order by these keys:
// 1. Cost::seconds divided by gain()
// 2. Cost::flops divided by gain()
// 3. Cost::bytes divided by gain()
//
// Calls of unknown cost come last. Calls with equal keys are in schedule order. `freed` and `kept`
// are exact if only one call is recomputed, and the sizes of its results are known. Two calls
// together may gain more or fewer bytes than the sum of both gains. O(nodes + edges + candidates
// log candidates).
std::vector<RecomputeCandidate> recompute_candidates(const Graph& graph, const StorageMap& storages,
                                                     const PhaseMap& phases, const MemoryReport& memory,
                                                     StringId device, uint32_t place, CostTable& costs);

}  // namespace fxopt
