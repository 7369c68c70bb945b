#pragma once

#include <cstdint>

#include "runtime/abi/plan.h"
#include "runtime/plan/place.h"

namespace fxopt {

// Spreads the steps of a placement on one stream over `streams` of them, without moving a byte: a step goes behind one that it needs, where
// no other step has gone there, else to the stream whose last step is the earliest. Events order what shares a storage, and what
// follows each other in the same bytes. `streams` is at least 1. Deterministic. O(steps * streams + words log storages).
void spread_over_streams(const FxPlan& plan, uint32_t streams, PlanPlacement& placement);

}  // namespace fxopt
