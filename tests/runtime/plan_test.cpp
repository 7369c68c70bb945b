// Plans and placements of every graph of testdata. Their memory must agree with `mem`.

#include "runtime/plan/plan.h"

#include <map>
#include <numeric>

#include "ir/memory/memory.h"
#include "ir/prepare.h"
#include "ir/step/compose.h"
#include "ir/step/phases.h"
#include "runtime/plan/check.h"
#include "runtime/plan/draws.h"
#include "runtime/plan/live.h"
#include "runtime/plan/place.h"
#include "runtime/plan/print.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

struct Planned {
  std::unique_ptr<Module> module;
  const Graph* graph = nullptr;
  std::unique_ptr<Plan> plan;
};

Planned plan_of(std::unique_ptr<Module> module) {
  Planned planned;
  prepare(*module);
  const Step step = must(find_step(*module));
  planned.graph = &module->graph(compose_step(*module, step));
  planned.plan = must(lower(*planned.graph, draw_keys(*module, step, *planned.graph)));
  planned.module = std::move(module);
  return planned;
}

void require_clean(const std::vector<PlanFault>& faults, const std::string& what) {
  if (faults.empty()) return;
  FAIL_CHECK(what << ": " << faults.size() << " faults, first " << plan_fault_name(faults.front().kind) << ": "
                  << faults.front().message);
}

// Compares the live bytes of `mem` at each step with those of the plan.
void compare_live_bytes(const Planned& planned, const std::string& name) {
  const Graph& graph = *planned.graph;
  const StorageMap storages(graph);
  MemoryOptions options;
  options.derive_classes = true;
  const MemoryReport report = analyze_memory(graph, storages, options);
  const FxPlan& plan = planned.plan->view();
  REQUIRE(plan.num_storages == report.lifetimes.size());
  const ScalarValues values = ScalarValues::by_symbols(plan, no_symbol_value);
  std::map<uint64_t, uint32_t> places;  // by uid
  for (const NodeId node : graph.nodes()) places[graph[node].uid] = graph.position(node);
  std::vector<int64_t> by_mem(graph.nodes().begin() == graph.nodes().end() ? 1 : places.size() + 1, 0);
  std::vector<int64_t> by_plan(plan.num_steps + 1, 0);
  size_t other_sizes = 0;
  for (uint64_t i = 0; i < plan.num_storages; ++i) {
    const Lifetime& life = report.lifetimes[i];
    by_mem[life.first] += life.bytes;
    by_mem[life.last + 1] -= life.bytes;
    const FxStorage& storage = plan.storages[i];
    const std::optional<int64_t> bytes = values.integer(storage.bytes);
    if (bytes.has_value() != life.known || bytes.value_or(0) != life.bytes) ++other_sizes;
    if (storage.first == FX_NONE) continue;
    by_plan[storage.first] += bytes.value_or(0);
    by_plan[storage.last + 1] -= bytes.value_or(0);
  }
  CAPTURE(name);
  CHECK(other_sizes == 0);
  for (size_t i = 1; i < by_mem.size(); ++i) by_mem[i] += by_mem[i - 1];
  size_t differing = 0;
  int64_t live = 0;
  for (uint64_t s = 0; s < plan.num_steps; ++s) {
    live += by_plan[s];
    if (live != by_mem[places.at(plan.nodes[plan.steps[s].node].uid)]) ++differing;
  }
  CHECK(differing == 0);
  for (const DevicePeak& peak : report.devices) {
    const std::vector<uint32_t> devices = devices_of(plan);
    const auto device = std::find_if(devices.begin(), devices.end(), [&](uint32_t index) {
      return planned.plan->text(index) == graph.module().text(peak.device);
    });
    if (device == devices.end()) continue;
    const PlanPeak found = peak_of(plan, values, *device);
    CHECK(found.bytes == peak.bytes);
    CHECK(std::accumulate(found.by_role.begin(), found.by_role.end(), int64_t{0}) == peak.bytes);
  }
}

TEST_CASE("plan: storages, bytes and lifetimes of all of testdata are those that mem counts") {
  for (const std::string& name : testdata_files()) compare_live_bytes(plan_of(load_testdata(name)), name);
}

TEST_CASE("plan: all of testdata is planned without a fault, and placed on one stream and on two") {
  size_t placements = 0;
  for (const std::string& name : testdata_files()) {
    const Planned planned = plan_of(load_testdata(name));
    const FxPlan& plan = planned.plan->view();
    require_clean(check_plan(plan), name);
    for (const uint32_t device : devices_of(plan)) {
      for (const uint32_t streams : {1u, 2u}) {
        PlaceOptions options;
        options.device = device;
        options.streams = streams;
        const PlanPlacement placed = place(plan, options).value();
        ++placements;
        require_clean(check_placement(plan, placed.view()), name);
        CAPTURE(name, streams, placed.arena_bytes, placed.lower_bound);
        // The search gives up on this graph, 10,752 B above the bound of 15.6 GB.
        const bool is_hard = name == "gpu/unet_joint.pb.zst";
        const int64_t above = placed.arena_bytes - placed.lower_bound;
        CHECK((above == 0 || (is_hard && above <= 10752)));
      }
    }
  }
  if (has_all_testdata()) CHECK(placements > 200);
}

// Matrix products and collectives ask for workspaces. The checker finds no fault in their
// placement, on one stream and on two.
TEST_CASE("place: workspaces lie beside what their steps use") {
  for (const char* name : {"gpt2_flb_twin.pb.zst", "llama8b_flb_twin.pb.zst", "deepseek16b_twin.pb.zst"}) {
    const Planned planned = plan_of(load_testdata(name));
    const FxPlan& plan = planned.plan->view();
    const auto asks = [&](uint32_t step) -> int64_t {
      const std::string_view op = op_name(plan, plan.steps[step]);
      return op.find("mm") != std::string_view::npos || plan.steps[step].kind == FX_STEP_COLLECTIVE ? 5000 : 0;
    };
    std::ptrdiff_t asked = 0, asking = 0;
    for (uint32_t step = 0; step < plan.num_steps; ++step) asking += asks(step) > 0 ? 1 : 0;
    for (const uint32_t device : devices_of(plan)) {
      for (const uint32_t streams : {1u, 2u}) {
        PlaceOptions options;
        options.device = device;
        options.streams = streams;
        const int64_t without = place(plan, options)->arena_bytes;
        options.workspace = asks;
        CAPTURE(name, streams);
        const PlanPlacement placed = place(plan, options).value();
        require_clean(check_placement(plan, placed.view()), name);
        const auto count = std::count_if(placed.workspaces.begin(), placed.workspaces.end(),
                                         [](const FxBlock& block) { return block.kind == FX_BLOCK_ARENA; });
        asked += count;
        CHECK(placed.arena_bytes >= without);
      }
    }
    CHECK(asked == 2 * asking);  // each on one device, for one stream and for two
  }
}

TEST_CASE("plan: the same file gives the same text") {
  const auto text = [] {
    const Planned planned = plan_of(load_testdata("deepseek16b_twin.pb.zst"));
    return print_plan(planned.plan->view());
  };
  CHECK(text() == text());
}

}  // namespace
}  // namespace fxopt
