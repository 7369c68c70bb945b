#pragma once

#include <cstdint>

#include "runtime/abi/plan.h"
#include "runtime/plan/place.h"

namespace fxopt {

// Spreads the plan's steps, which `placement` assigns to one stream, over `streams` streams. No
// storage is moved. If two steps on different streams access the same bytes, and at least one of
// these steps writes, events order the two steps. `streams` must be at least 1. The result is
// deterministic.
//
// The function visits the steps in the order of the plan. The last step of a stream is the last
// step that the function has added to the stream so far. If the visited step depends on the last
// step of a stream, the function adds the visited step to this stream. If several streams qualify,
// the function chooses the stream whose last step is the latest in the plan. If no stream
// qualifies, the function chooses an empty stream, or else the stream whose last step is the
// earliest in the plan.
//
// O(steps * streams^2 + (words + storages) * streams + (steps + storages) log (steps + storages)).
// Here, `words` is the number of entries in the steps' arguments, results, `writes` and `after`.
// The entries of a step that starts a collective or a message are counted once more for each wait
// for this collective or message.
void spread_over_streams(const FxPlan& plan, uint32_t streams, PlanPlacement& placement);

}  // namespace fxopt
