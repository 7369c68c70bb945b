// Memory held by collectives: references until the wait, or recorded streams.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/io/io.h"
#include "ir/memory/memory.h"
#include "ir/memory/replay.h"
#include "ir/memory/trace.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/replaced.h"
#include "tests/units.h"

namespace fxopt {
namespace {

// A graph whose tensors take 20 MiB, or 40 MiB if named in capitals; %p belongs to the caller.
std::string graph(std::string body) {
  const auto replace_all = [&body](std::string_view from, std::string_view to) {
    for (size_t at = body.find(from); at != std::string::npos; at = body.find(from, at + to.size())) {
      body.replace(at, from.size(), to);
    }
  };
  replace_all("T2", "f32[10485760]@cuda:0");
  replace_all("T1", "f32[5242880]@cuda:0");
  replace_all("gather(", "_c10d_functional.all_gather_into_tensor.default(");
  replace_all("wait(", "_c10d_functional.wait_tensor.default(");
  replace_all("reduce(", "_c10d_functional.all_reduce.default(");
  replace_all("exp(", "aten.exp.default(");
  return "process_group {uid=\"0\", ranks=[0, 1]}\ngraph @main {\n" + body + "}\n";
}

// The collective is the last use of %x, and holds %x until the wait.
const std::string kGathered = graph(R"(
  %p: T1 = placeholder()
  %x: T1 = exp(%p)
  %GA: T2 = gather(%x, 2, group("0"))
  %y: T1 = exp(%p)
  %WA: T2 = wait(%GA)
  %z: T1 = exp(%p)
  return (%y, %z, %WA)
)");

// The gradient is reduced at the end: nothing is allocated after the wait.
const std::string kReduced = graph(R"(
  output_spec {role=gradient, of="p"}
  %p: T1 = placeholder() {input={role=parameter}}
  %g: T1 = exp(%p)
  %r: T1 = reduce(%g, "sum", group("0"))
  %d: T1 = wait(%r)
  return %d
)");

// Records which blocks are freed, and where.
struct Ends final : ReplayListener {
  std::vector<std::pair<uint32_t, uint32_t>> requested, completed;  // block and place
  size_t pending = 0;                                               // at the end

  void on_begin(const std::vector<uint64_t>&) override {
    requested.clear();
    completed.clear();
  }
  void on_event(uint32_t place, uint32_t block, const AllocatorEvent& event) override {
    if (event.action == AllocatorAction::kFreeRequested) requested.emplace_back(block, place);
    if (event.action == AllocatorAction::kFreeCompleted) completed.emplace_back(block, place);
  }
  void on_end(const CachingAllocator& allocator) override {
    pending = 0;
    for (const SegmentInfo& segment : allocator.snapshot()) {
      for (const BlockInfo& block : segment.blocks) pending += block.state == BlockState::kPendingFree ? 1 : 0;
    }
  }
};

struct Run {
  std::unique_ptr<Module> module;
  MemoryTrace trace;
  MemoryTimeline timeline;
  AllocatorReplay replay;
  Ends ends;

  std::string name(NodeId node) const { return node.is_valid() ? std::string(module->main().name_of(node)) : ""; }

  // The blocks released and freed over the graph: "~x at GA, -x at WA".
  std::string frees() const {
    std::string text;
    for (uint32_t place = 0; place < trace.schedule.size(); ++place) {
      for (const TraceEvent& event : trace.events_at(place)) {
        if (event.action == TraceAction::kTake) continue;
        text += (text.empty() ? "" : ", ") + std::string(event.action == TraceAction::kRelease ? "~" : "-") +
                name(trace.blocks[event.block].node) + " at " + name(trace.schedule[place]);
      }
    }
    return text;
  }

  std::string text_of(const std::vector<std::pair<uint32_t, uint32_t>>& ended) const {
    std::string text;
    for (const auto& [block, place] : ended) {
      text += (text.empty() ? "" : ", ") + name(trace.blocks[block].node) + " at " + name(trace.schedule[place]);
    }
    return text;
  }
};

Run run(const std::string& text, CommLifetime comm, ReplayOptions replay = {},
        std::optional<SteadyState> steady = std::nullopt) {
  Run result;
  result.module = must(parse_text(text, "test"));
  const Graph& main = result.module->main();
  const StorageMap storages(main);
  const MemoryReport memory = analyze_memory(main, storages);
  REQUIRE(memory.devices.size() == 1);
  TraceOptions options;
  options.comm = comm;
  options.steady = steady;
  result.trace = trace_memory(main, storages, memory, memory.devices.front().device, {}, options);
  result.timeline = timeline_of(result.trace);
  replay.steady = steady.has_value();
  replay.timeline = true;
  replay.listener = &result.ends;
  result.replay = replay_allocator(result.trace, replay);
  return result;
}

std::vector<int64_t> mib(const std::vector<int64_t>& bytes) {
  std::vector<int64_t> values;
  for (const int64_t each : bytes) values.push_back(each / kMiB);
  return values;
}

// Checks figures that do not depend on the lifetime mode.
void check_same_but_allocated(const Run& wait, const Run& recorded) {
  CHECK(recorded.timeline.ideal == wait.timeline.ideal);
  CHECK(recorded.timeline.requested == wait.timeline.requested);
  CHECK(recorded.replay.requested.bytes == wait.replay.requested.bytes);
  CHECK(recorded.replay.requested.node == wait.replay.requested.node);
  CHECK(recorded.replay.active.bytes == wait.replay.active.bytes);
  CHECK(recorded.replay.active.node == wait.replay.active.node);
  CHECK(recorded.replay.reserved.bytes == wait.replay.reserved.bytes);
  CHECK(recorded.replay.reserved_at == wait.replay.reserved_at);
  for (uint32_t place = 0; place < wait.trace.schedule.size(); ++place) {
    CHECK(live_blocks(recorded.trace, place) == live_blocks(wait.trace, place));
  }
}

TEST_CASE("comm lifetime: a recorded stream lets the owner free at the collective, and holds until the wait",
          "[memory][allocator]") {
  for (const bool expandable : {false, true}) {
    CAPTURE(expandable);
    ReplayOptions options;
    options.config.expandable_segments = expandable;
    const Run wait = run(kGathered, CommLifetime::kWait, options);
    const Run recorded = run(kGathered, CommLifetime::kRecordStream, options);
    CHECK(wait.frees() == "-x at WA");
    CHECK(recorded.frees() == "~x at GA, -x at WA");
    // p 20, x 20, GA 40, y 20: 100 MiB at %y. With recorded streams the statistics do not count %x
    // there. %z takes %x's memory.
    CHECK(mib(wait.replay.allocated_at) == std::vector<int64_t>{20, 40, 80, 100, 100, 100, 100});
    CHECK(mib(recorded.replay.allocated_at) == std::vector<int64_t>{20, 40, 80, 80, 80, 100, 100});
    CHECK(recorded.replay.active.bytes == 100 * kMiB);
    CHECK(recorded.name(recorded.replay.active.node) == "y");
    CHECK(recorded.replay.allocated.bytes == 100 * kMiB);
    CHECK(recorded.name(recorded.replay.allocated.node) == "z");
    CHECK(recorded.replay.reserved.bytes == 100 * kMiB);
    CHECK(recorded.text_of(recorded.ends.requested) == "x at GA");
    CHECK(recorded.text_of(recorded.ends.completed) == "x at z");  // the first allocation after the wait
    check_same_but_allocated(wait, recorded);
  }
}

TEST_CASE("comm lifetime: allocated falls below active where nothing else comes later", "[memory][allocator]") {
  const std::string text = replaced(kGathered, "(%y, %z, %WA)", "(%z, %WA)");  // %y ends at once: 80 MiB live at %z
  const Run wait = run(text, CommLifetime::kWait);
  const Run recorded = run(text, CommLifetime::kRecordStream);
  CHECK(wait.replay.allocated.bytes == 100 * kMiB);
  CHECK(recorded.replay.allocated.bytes == 80 * kMiB);
  CHECK(recorded.name(recorded.replay.allocated.node) == "GA");
  CHECK(recorded.replay.active.bytes == 100 * kMiB);
  check_same_but_allocated(wait, recorded);
}

// %z is in %x's memory and has no consumer.
TEST_CASE("comm lifetime: what follows at the address of a released block is told as itself", "[memory][allocator]") {
  const Run recorded = run(replaced(kGathered, "(%y, %z, %WA)", "(%y, %WA)"), CommLifetime::kRecordStream);
  CHECK(recorded.text_of(recorded.ends.requested) == "x at GA, z at z");
  CHECK(recorded.text_of(recorded.ends.completed) == "x at z, z at z");
}

TEST_CASE("comm lifetime: the owner frees behind its last other reader", "[memory][allocator]") {
  const std::string text = replaced(kGathered, "%y: f32[5242880]@cuda:0 = aten.exp.default(%p)",
                                    "%y: f32[5242880]@cuda:0 = aten.exp.default(%x)");
  CHECK(run(text, CommLifetime::kRecordStream).frees() == "~x at y, -x at WA");
}

TEST_CASE("comm lifetime: what is read behind the wait, the caller's, and what ends at no wait or the last node",
          "[memory][allocator]") {
  const std::string later = replaced(kGathered, "%z: f32[5242880]@cuda:0 = aten.exp.default(%p)",
                                     "%z: f32[5242880]@cuda:0 = aten.exp.default(%x)");
  const std::string callers = replaced(kGathered, "tensor.default(%x", "tensor.default(%p");
  const std::string returned = replaced(kGathered, "(%y, %z, %WA)", "(%x, %z, %WA)");
  const std::string unwaited = replaced(kGathered, "_c10d_functional.wait_tensor", "aten.clone");
  const std::string last = replaced(kReduced, "  return %d", "");  // nothing is freed in it
  for (const std::string& text : {later, callers, returned, unwaited, last}) {
    CAPTURE(text);
    const Run wait = run(text, CommLifetime::kWait);
    const Run recorded = run(text, CommLifetime::kRecordStream);
    CHECK(recorded.frees() == wait.frees());
    CHECK(recorded.replay.allocated_at == wait.replay.allocated_at);
    CHECK(recorded.replay.allocated.bytes == recorded.replay.active.bytes);
    check_same_but_allocated(wait, recorded);
  }
}

TEST_CASE("comm lifetime: a donated input is released as what the graph makes", "[memory][allocator]") {
  const std::string text = graph(R"(
  %x: T1 = placeholder() {input={role=input, donated=true}}
  %GA: T2 = gather(%x, 2, group("0"))
  %y: T1 = exp(%x)
  %WA: T2 = wait(%GA)
  return %WA
)");
  CHECK(run(text, CommLifetime::kRecordStream).frees() == "~x at y, -y at y, -x at WA");
  CHECK(run(text, CommLifetime::kWait).frees() == "-y at y, -x at WA");
}

TEST_CASE("comm lifetime: a collective in place is read by its own wait", "[memory][allocator]") {
  const std::string text = graph(R"(
  %p: T1 = placeholder()
  %x: T1 = exp(%p)
  %r: T1 = _c10d_functional.all_reduce_.default(%x, "sum", group("0"))
  %y: T1 = exp(%p)
  %w: T1 = wait(%r)
  %z: T1 = exp(%w)
  return %z
)");
  CHECK(run(text, CommLifetime::kRecordStream).frees() == "-y at y, -x at z");
}

// The last wait ends the collective's hold, also on the outputs; the first output is no longer used
// by then.
TEST_CASE("comm lifetime: a coalesced collective with several waits", "[memory][allocator]") {
  const std::string text = graph(R"(
  %p: T1 = placeholder()
  %x: T1 = exp(%p)
  %u: T1 = exp(%p)
  %all: [T1, T1] = _c10d_functional.all_reduce_coalesced.default([%x, %u], "sum", group("0"))
  %g0: T1 = operator.getitem(%all, 0)
  %g1: T1 = operator.getitem(%all, 1)
  %w0: T1 = wait(%g0)
  %a: T1 = exp(%w0)
  %y: T1 = exp(%p)
  %w1: T1 = wait(%g1)
  %b: T1 = exp(%w1)
  return (%a, %b)
)");
  const Run wait = run(text, CommLifetime::kWait);
  const Run recorded = run(text, CommLifetime::kRecordStream);
  CHECK(wait.frees() == "-y at y, -x at w1, -u at w1, -all at w1, -all at b");
  CHECK(recorded.frees() == "~x at all, ~u at all, ~all at a, -y at y, -x at w1, -u at w1, -all at w1, -all at b");
  check_same_but_allocated(wait, recorded);
}

// Each wait ends only its own collective's hold, whatever else is in flight.
TEST_CASE("comm lifetime: two collectives at once", "[memory][allocator]") {
  const std::string text = graph(R"(
  %p: T1 = placeholder()
  %x: T1 = exp(%p)
  %r: T1 = reduce(%x, "sum", group("0"))
  %u: T1 = exp(%p)
  %s: T1 = reduce(%u, "sum", group("0"))
  %w: T1 = wait(%r)
  %a: T1 = exp(%p)
  %v: T1 = wait(%s)
  %b: T1 = exp(%p)
  return (%a, %b, %w, %v)
)");
  const Run recorded = run(text, CommLifetime::kRecordStream);
  CHECK(recorded.text_of(recorded.ends.requested) == "x at r, u at s");
  CHECK(recorded.text_of(recorded.ends.completed) == "x at a, u at b");
  check_same_but_allocated(run(text, CommLifetime::kWait), recorded);
}

TEST_CASE("comm lifetime: an allocation that fails waits for the events", "[memory][allocator]") {
  ReplayOptions options;
  options.device_bytes = 80 * kMiB;  // p, x, GA
  const Run wait = run(kGathered, CommLifetime::kWait, options);
  CHECK(wait.name(wait.replay.out_of_memory) == "y");
  const Run recorded = run(kGathered, CommLifetime::kRecordStream, options);
  CHECK(recorded.name(recorded.replay.out_of_memory) == "z");  // %y has %x's memory
  CHECK(recorded.text_of(recorded.ends.completed) == "x at y");
}

TEST_CASE("comm lifetime: what is released at the end of a step ends in the next one", "[memory][allocator]") {
  const SteadyState freed{OptimizerState::kNone, false};
  for (const bool expandable : {false, true}) {
    CAPTURE(expandable);
    ReplayOptions options;
    options.config.expandable_segments = expandable;
    const Run wait = run(kReduced, CommLifetime::kWait, options, freed);
    const Run recorded = run(kReduced, CommLifetime::kRecordStream, options, freed);
    CHECK(recorded.replay.is_steady);
    CHECK(recorded.replay.steps == wait.replay.steps);
    CHECK(mib(wait.replay.allocated_at) == std::vector<int64_t>{20, 40, 60, 60, 40});
    CHECK(mib(recorded.replay.allocated_at) == std::vector<int64_t>{20, 40, 60, 40, 40});
    CHECK(recorded.text_of(recorded.ends.requested) == "g at r");
    CHECK(recorded.text_of(recorded.ends.completed) == "g at g");  // %g of the previous step
    CHECK(wait.ends.pending == 0);
    CHECK(recorded.ends.pending == 1);
    check_same_but_allocated(wait, recorded);
  }
}

}  // namespace
}  // namespace fxopt
