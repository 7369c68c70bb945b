// The caching allocator over a graph's storages: peaks, their places, and out-of-memory.

#include "ir/memory/replay.h"

#include <memory>
#include <string>
#include <utility>

#include "ir/alias/storages.h"
#include "ir/io/io.h"
#include "ir/memory/memory.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/units.h"

namespace fxopt {
namespace {

// 3, 3, 7 and 3 MiB; %a ends at %c.
constexpr const char* kSteps = R"(graph @main {
  %x: f32[786432]@cuda:0 = placeholder()
  %a: f32[786432]@cuda:0 = aten.exp.default(%x)
  %b: f32[1835008]@cuda:0 = aten.new_empty.default(%a, [1835008])
  %c: f32[786432]@cuda:0 = aten.exp.default(%a)
  return (%b, %c)
})";

// 20 MiB each.
constexpr const char* kChain = R"(graph @main {
  %x: f32[5242880]@cuda:0 = placeholder()
  %a: f32[5242880]@cuda:0 = aten.exp.default(%x)
  %b: f32[5242880]@cuda:0 = aten.exp.default(%a)
  %c: f32[5242880]@cuda:0 = aten.exp.default(%b)
  return %c
}
)";

struct Replayed {
  std::unique_ptr<Module> module;
  AllocatorReplay replay;

  std::string name(NodeId node) const { return node.is_valid() ? std::string(module->main().name_of(node)) : ""; }
};

Replayed run(const std::string& text, const ReplayOptions& options = {}) {
  Replayed result{must(parse_text(text, "test")), {}};
  const Graph& graph = result.module->main();
  const StorageMap storages(graph);
  const MemoryReport memory = analyze_memory(graph, storages);
  REQUIRE(memory.devices.size() == 1);
  result.replay =
      replay_allocator(trace_memory(graph, storages, memory, memory.devices.front().device, {}, {}), options);
  return result;
}

TEST_CASE("allocator replay: peaks of a chain, each at its node", "[memory][allocator]") {
  const Replayed done = run(kSteps);
  // All four are live at %c: 3 + 3 + 7 + 3 MiB, in one segment of 20 MiB.
  CHECK(done.replay.requested.bytes == 16 * kMiB);
  CHECK(done.replay.allocated.bytes == 16 * kMiB);
  CHECK(done.replay.active.bytes == 16 * kMiB);
  CHECK(done.replay.reserved.bytes == 20 * kMiB);
  CHECK(done.name(done.replay.requested.node) == "c");
  CHECK(done.name(done.replay.reserved.node).empty());                    // the input's segment serves all
  CHECK(done.replay.statistics.allocated_bytes[0].current == 13 * kMiB);  // %a is freed, the caller has the rest
}

TEST_CASE("allocator replay: a storage that ends makes room for the next", "[memory][allocator]") {
  const Replayed done = run(kChain);
  CHECK(done.replay.allocated.bytes == 60 * kMiB);
  CHECK(done.replay.reserved.bytes == 60 * kMiB);  // %c takes %a's memory
  CHECK(done.name(done.replay.reserved.node) == "b");
  CHECK(done.replay.statistics.num_device_alloc == 3);
}

TEST_CASE("allocator replay: rounding separates requested from allocated", "[memory][allocator]") {
  const std::string text = R"(graph @main {
  %x: f32[1]@cuda:0 = placeholder()
  %a: f32[129]@cuda:0 = aten.new_empty.default(%x, [129])
  return %a
}
)";
  const Replayed done = run(text);
  CHECK(done.replay.requested.bytes == 520);
  CHECK(done.replay.allocated.bytes == 512 + 1024);
  CHECK(done.replay.reserved.bytes == 2 * kMiB);
}

TEST_CASE("allocator replay: the node where memory runs out", "[memory][allocator]") {
  ReplayOptions options;
  options.device_bytes = 20 * kMiB;
  CHECK(!run(kSteps, options).replay.out_of_memory.is_valid());
  options.device_bytes = 20 * kMiB - 1;
  const Replayed inputs = run(kSteps, options);
  CHECK(inputs.name(inputs.replay.out_of_memory) == "x");
  options.device_bytes = 50 * kMiB;
  const Replayed late = run(kChain, options);
  CHECK(late.name(late.replay.out_of_memory) == "b");
  CHECK(late.replay.failed_bytes == 20 * kMiB);
  options.device_bytes = 60 * kMiB;
  CHECK(!run(kChain, options).replay.out_of_memory.is_valid());
}

TEST_CASE("allocator replay: memory made by nobody's reader is freed at once", "[memory][allocator]") {
  const std::string text = R"(graph @main {
  %x: f32[5242880]@cuda:0 = placeholder()
  %unread: f32[5242880]@cuda:0 = aten.exp.default(%x)
  %b: f32[5242880]@cuda:0 = aten.exp.default(%x)
  return %b
}
)";
  CHECK(run(text).replay.reserved.bytes == 40 * kMiB);
}

}  // namespace
}  // namespace fxopt
