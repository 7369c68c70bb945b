#pragma once

#include <cstdint>

#include "runtime/abi/plan.h"
#include "runtime/plan/place.h"

namespace fxopt {

// Spreads the plan's steps, which `placement` assigns to one stream, over `streams` streams. No
// storage is moved. If a step depends on the step that is still last on a stream, it runs on that
// stream. Otherwise the step runs on the stream whose last step is the earliest. If two steps on
// different streams access the same bytes, and at least one of these steps writes, events order the
// two steps. `streams` must be at least 1. The result is deterministic. O(steps * streams + words
// log storages).
void spread_over_streams(const FxPlan& plan, uint32_t streams, PlanPlacement& placement);

}  // namespace fxopt
