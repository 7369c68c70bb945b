#pragma once

#include <cstdint>

#include "runtime/abi/plan.h"
#include "runtime/plan/place.h"

namespace fxopt {

// Spreads the steps of a one-stream placement over `streams` streams, without moving a byte. A step
// follows one of its dependencies that is still the last step of its stream. Otherwise it runs on
// the stream whose last step is the earliest. Events order steps that share a storage, and storages
// that reuse the same bytes. `streams` is at least 1. Deterministic. O(steps * streams + words log
// storages).
void spread_over_streams(const FxPlan& plan, uint32_t streams, PlanPlacement& placement);

}  // namespace fxopt
