// Traces of allocations: the order inside a node, hidden memory, memory that lives between steps,
// ownership of inputs.

#include "ir/memory/trace.h"

#include <memory>
#include <string>
#include <vector>

#include "ir/io/io.h"
#include "ir/memory/replay.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/replaced.h"
#include "tests/units.h"

namespace fxopt {
namespace {

constexpr const char* kProfile = R"(
temporary aten.mm.default copy = self.bytes [source]
workspace aten.mm.default library = 100 [estimate]
persistent aten.mm.default handle = 1000 [source]
persistent aten.bmm.default handle = 1000 [source]
)";

constexpr const char* kTwoProducts = R"(graph @main {
  %x: f32[4, 4]@cuda:0 = placeholder()
  %a: f32[4, 4]@cuda:0 = aten.mm.default(%x, %x)
  %b: f32[4, 4]@cuda:0 = aten.mm.default(%a, %a)
  return %b
})";

constexpr std::string_view kSigns[] = {"+", "~", "-"};  // by TraceAction; "~": released

struct Traced {
  std::unique_ptr<Module> module;
  std::unique_ptr<DeviceProfile> profile;
  MemoryTrace trace;

  // The events at a node: "+copy 64, +a 64, -copy 64".
  std::string at(const std::string& name) const {
    std::string text;
    const uint32_t place = module->main().position(module->main().find(module->strings.find(name)));
    for (const TraceEvent& event : trace.events_at(place)) {
      const TraceBlock& block = trace.blocks[event.block];
      text += (text.empty() ? "" : ", ") + std::string(kSigns[static_cast<size_t>(event.action)]);
      text += block.label.empty() ? std::string(module->main().name_of(block.node)) : std::string(block.label);
      text += " " + std::to_string(block.bytes);
    }
    return text;
  }

  // The blocks present before the first node.
  std::string initial() const {
    std::string text;
    for (const uint32_t block : trace.initial) {
      const TraceBlock& there = trace.blocks[block];
      text += (text.empty() ? "" : ", ") + std::string(module->main().name_of(there.node));
      if (!there.label.empty()) text += "." + std::string(there.label);
    }
    return text;
  }
};

Traced trace(const std::string& text, const MemoryOptions& lifetimes = {}, bool with_profile = false,
             std::optional<SteadyState> steady = std::nullopt) {
  Traced result{must(parse_text(text, "test")), nullptr, {}};
  TraceOptions options;
  options.steady = steady;
  if (with_profile) {
    const auto none = [](const std::string&, std::string_view) { return std::optional<ProfileText>(); };
    std::unique_ptr<DeviceProfile> profile =
        must(DeviceProfile::parse(std::vector<ProfileText>{{"test.device", kProfile}}, none));
    result.profile = std::move(profile);
    options.profile = result.profile.get();
  }
  const Graph& graph = result.module->main();
  const StorageMap storages(graph);
  const MemoryReport memory = analyze_memory(graph, storages, lifetimes);
  result.trace = trace_memory(graph, storages, memory, result.module->strings.find("cuda:0"), lifetimes, options);
  return result;
}

TEST_CASE("memory trace: temporaries, outputs, workspaces, then what the call gives back, then what ended",
          "[memory]") {
  const Traced traced = trace(kTwoProducts, {}, true);
  CHECK(traced.initial() == "x");
  CHECK(traced.at("a") == "+copy 64, +a 64, +library 100, +handle 1000, -library 100, -copy 64");
  CHECK(traced.at("b") == "+copy 64, +b 64, +library 100, -library 100, -copy 64, -a 64");  // one handle for all
  const MemoryTimeline timeline = timeline_of(traced.trace);
  CHECK(timeline.ideal == std::vector<int64_t>{64, 128, 192, 128});
  CHECK(timeline.requested == std::vector<int64_t>{64, 128 + 164 + 1000, 192 + 164 + 1000, 128 + 1000});
}

TEST_CASE("memory trace: live blocks, largest first", "[memory]") {
  const Traced traced = trace(kTwoProducts, {}, true);
  std::string names;
  for (const uint32_t block : live_blocks(traced.trace, 2)) {
    const TraceBlock& live = traced.trace.blocks[block];
    names += live.label.empty() ? std::string(traced.module->main().name_of(live.node)) : std::string(live.label);
    names += " ";
  }
  CHECK(names == "handle library x a b copy ");
}

TEST_CASE("memory trace: calls on another device take nothing here", "[memory]") {
  const Traced traced = trace(R"(graph @main {
  %x: f32[4, 4]@cuda:0 = placeholder()
  %h: f32[4, 4]@cpu = placeholder()
  %b: f32[4, 4]@cpu = aten.mm.default(%h, %h)
  return (%x, %b)
})",
                              {}, true);
  CHECK(traced.at("b").empty());
}

// Frees follow the order of the node's inputs, each once; results without a consumer are freed
// last.
TEST_CASE("memory trace: the order in which a node frees", "[memory]") {
  const Traced traced = trace(R"(graph @main {
  %x: f32[4]@cuda:0 = placeholder()
  %a: f32[4]@cuda:0 = aten.exp.default(%x)
  %b: f32[4]@cuda:0 = aten.exp.default(%x)
  %u: f32[4]@cuda:0 = aten.add.Tensor(%b, %a)
  %c: f32[4]@cuda:0 = aten.exp.default(%x)
  return %c
})");
  CHECK(traced.at("u") == "+u 16, -b 16, -a 16, -u 16");
  CHECK(traced.at("c") == "+c 16");
}

TEST_CASE("memory trace: boxed inputs end at their last reader, what a step keeps does not", "[memory]") {
  const std::string text = R"(graph @main {
  %w: f32[4]@cuda:0 = placeholder() {input={role=parameter}}
  %x: f32[4]@cuda:0 = placeholder() {input={role=input}}
  %unread: f32[4]@cuda:0 = placeholder() {input={role=input}}
  %a: f32[4]@cuda:0 = aten.add.Tensor(%x, %w)
  %b: f32[4]@cuda:0 = aten.exp.default(%a)
  return %b
})";
  MemoryOptions boxed;
  boxed.inputs = InputLifetime::kBoxed;
  CHECK(trace(text).at("a") == "+a 16");
  CHECK(trace(text, boxed).at("a") == "+a 16, -x 16");
  CHECK(timeline_of(trace(text, boxed).trace).ideal.back() == 3 * 16);  // %w, %unread, %b
}

constexpr const char* kTracedStep = R"(graph @main {
  output_spec {role=loss}
  output_spec {role=gradient, of="w"}
  %w: f32[1048576]@cuda:0 = placeholder() {input={role=parameter}}
  %frozen: f32[1048576]@cuda:0 = placeholder() {input={role=parameter}}
  %x: f32[1048576]@cuda:0 = placeholder() {input={role=input}}
  %a: f32[1048576]@cuda:0 = aten.mul.Tensor(%w, %x)
  %loss: f32[]@cuda:0 = aten.sum.default(%a)
  %g: f32[1048576]@cuda:0 = aten.mul.Tensor(%a, %x)
  return (%loss, %g)
})";

TEST_CASE("memory trace: a later step has optimizer state and the gradients it adds to", "[memory]") {
  const auto initial = [](OptimizerState optimizer, bool keep) {
    return trace(kTracedStep, {}, false, SteadyState{optimizer, keep}).initial();
  };
  CHECK(initial(OptimizerState::kNone, false) == "w, frozen, x");
  CHECK(initial(OptimizerState::kMomentum, false) == "w, frozen, x, w.momentum_buffer");
  CHECK(initial(OptimizerState::kAdam, true) == "w, frozen, x, w.exp_avg, w.exp_avg_sq, g.gradient");
}

TEST_CASE("memory trace: of tied weights one gradient is kept", "[memory]") {
  const std::string two = replaced(kTracedStep, "output_spec {role=loss}", "output_spec {role=gradient, of=\"w\"}");
  const std::string text = replaced(two, "return (%loss, %g)", "return (%a, %g)");
  CHECK(trace(text, {}, false, SteadyState{OptimizerState::kNone, true}).initial() == "w, frozen, x, a.gradient");
}

TEST_CASE("memory trace: an operator that nobody describes takes what is not known", "[memory]") {
  const Traced traced = trace(R"(graph @main {
  %x: f32[4, 4]@cuda:0 = placeholder()
  %b: f32[4, 4]@cuda:0 = mine.op.default(%x)
  %c: f32[4, 4]@cuda:0 = aten.mm.default(%b, %b)
  return %c
})",
                              {}, true);
  REQUIRE(traced.trace.unknown_hidden.size() == 1);
  CHECK(traced.module->main().name_of(traced.trace.unknown_hidden[0]) == "b");
}

TEST_CASE("memory: an input's storage ends where each placeholder on it is donated", "[memory]") {
  const auto ideal = [](const char* second) {
    return timeline_of(trace(std::string(R"(graph @main {
  %x: f32[4]@cuda:0$7 = placeholder() {input={donated=true}}
  %y: f32[4]@cuda:0$7 = placeholder() {input={)") +
                             second + R"(}}
  %a: f32[4]@cuda:0 = aten.add.Tensor(%x, %y)
  %b: f32[4]@cuda:0 = aten.exp.default(%a)
  return %b
})")
                           .trace)
        .ideal;
  };
  CHECK(ideal("donated=true")[3] == 32);   // %a and %b
  CHECK(ideal("donated=false")[3] == 48);  // and the inputs' storage
}

TEST_CASE("memory trace: no optimizer state where the inputs hold it", "[memory]") {
  const std::string text = replaced(kTracedStep, "role=input", "role=optimizer_state");
  CHECK(trace(text, {}, false, SteadyState{OptimizerState::kAdam, false}).initial() == "w, frozen, x");
}

AllocatorReplay replay(const Traced& traced, bool steady) {
  ReplayOptions options;
  options.steady = steady;
  return replay_allocator(traced.trace, options);
}

TEST_CASE("allocator replay: steps run until two are alike", "[memory][allocator]") {
  const AllocatorReplay first = replay(trace(kTracedStep), false);
  CHECK(first.steps == 1);
  CHECK(first.requested.bytes == 5 * 4 * kMiB + 4);  // w, frozen, x, a, g, and the loss
  const AllocatorReplay later = replay(trace(kTracedStep, {}, false, SteadyState{}), true);
  CHECK(later.is_steady);
  CHECK(later.steps >= 3);
  CHECK(later.requested.bytes == 8 * 4 * kMiB + 4);  // plus two states and a gradient
  // The caller frees the loss and the accumulated gradient; parameters, states, gradient and input
  // stay.
  const AllocatorReplay freed = replay(trace(kTracedStep, {}, false, SteadyState{OptimizerState::kAdam, false}), true);
  CHECK(freed.requested.bytes == 7 * 4 * kMiB + 4);
}

TEST_CASE("allocator replay: a handle's memory is taken once, in the first step", "[memory][allocator]") {
  const Traced traced = trace(kTwoProducts, {}, true, SteadyState{});
  CHECK(timeline_of(traced.trace).requested.front() == 64 + 1000);
  const AllocatorReplay later = replay(traced, true);
  CHECK(later.requested.bytes == 192 + 164 + 1000);
  CHECK(later.is_steady);
}

}  // namespace
}  // namespace fxopt
