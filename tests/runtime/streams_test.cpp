// Steps spread over streams. The checker of placements knows nothing of the planner, and finds
// every missing event.

#include "runtime/plan/streams.h"

#include "runtime/plan/check.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/plan.h"
#include "tests/catch.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

TEST_CASE("streams: what is spread over them is ordered, on every graph of testdata") {
  size_t graphs = 0, events = 0, spread = 0;
  for (const std::string& file : testdata_files()) {
    const Result<std::unique_ptr<Plan>> lowered = lower_step(*load_optimized(file, ""));
    if (!lowered.ok()) continue;
    const FxPlan& plan = (*lowered)->view();
    if (plan.num_steps == 0 || plan.num_steps > 20'000) continue;
    PlaceOptions options;
    options.device = devices_of(plan).front();
    options.every_device = true;
    options.arena_effort = 0;
    options.workspace = [](uint32_t step) { return step % 7 == 0 ? 700 : 0; };
    const Result<PlanPlacement> placed = place(plan, options);
    if (!placed.ok()) continue;
    ++graphs;
    for (const uint32_t streams : {2u, 3u, 8u}) {
      PlanPlacement over = *placed;
      spread_over_streams(plan, streams, over);
      CAPTURE(file, streams);
      // Storages recorded on other devices have blocks here as well, which is a kBlock fault. All
      // other rules must hold.
      for (const PlanFault& fault : check_placement(plan, over.view())) {
        if (fault.kind != PlanFaultKind::kBlock) FAIL_CHECK(plan_fault_name(fault.kind) << ": " << fault.message);
      }
      events += over.events.size();
      for (const uint16_t stream : over.streams) spread += stream > 0 ? 1 : 0;
      // Without its events the order is incomplete.
      if (over.events.empty() || streams != 3) continue;
      over.events.clear();
      CHECK_FALSE(check_placement(plan, over.view()).empty());
    }
  }
  CHECK(graphs > 50);
  CHECK(spread > 1000);
  CHECK(events > 1000);
}

}  // namespace
}  // namespace fxopt
