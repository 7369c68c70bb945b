// The memory of one graph: every peak, whether it fits, and which graphs are measured.

#include "ir/memory/footprint.h"

#include <memory>
#include <string>

#include "ir/graph/top_level.h"
#include "ir/io/io.h"
#include "ir/prepare.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

// 16 MiB of input, 16 MiB of output: one segment of the allocator each.
const std::string kStep =
    "fxg 0\ngraph @main {\n  %w: f32[4194304]@cuda:0 = placeholder() {input={role=parameter, fqn=\"w\"}}\n"
    "  %y: f32[4194304]@cuda:0 = aten.exp.default(%w)\n  return (%y,)\n}\n";

Footprint measured(const Module& module, std::optional<int64_t> device_bytes, bool timelines = false) {
  MeasureOptions options;
  options.memory.derive_classes = true;
  options.device_bytes = device_bytes;
  options.timelines = timelines;
  return measure(module.main(), options);
}

TEST_CASE("footprint: six peaks, with ids", "[memory]") {
  const std::unique_ptr<Module> module = parse(kStep);
  const Footprint footprint = measured(*module, std::nullopt);
  REQUIRE(footprint.devices.size() == 1);
  const DeviceFootprint& device = footprint.devices.front();
  const NodeId y = module->main().find(module->strings.find("y"));
  for (size_t i = 0; i < kNumMemoryMetrics; ++i) {
    const MemoryMetric metric = static_cast<MemoryMetric>(i);
    INFO(metric_name(metric));
    const std::optional<FootprintPeak> peak = device.peak(metric, false);
    REQUIRE(peak.has_value());
    CHECK(peak->node == y);
    CHECK(peak->bytes == 32 * 1024 * 1024);
    CHECK(find_metric(metric_name(metric)) == metric);
  }
  CHECK(device.place == 1);
  CHECK(device.is_exact);
  CHECK_FALSE(device.fit(false).has_value());  // no limit is set
}

TEST_CASE("footprint: fits to the last byte of a segment, and tells where it does not", "[memory]") {
  const std::unique_ptr<Module> module = parse(kStep);
  const int64_t reserved = measured(*module, std::nullopt).devices.front().peak(MemoryMetric::kReserved, false)->bytes;
  const std::optional<Fit> inside = measured(*module, reserved + 5).devices.front().fit(false);
  REQUIRE(inside.has_value());
  CHECK(inside->fits);
  CHECK(inside->spare == 5);
  const Footprint footprint = measured(*module, reserved - 1);
  const std::optional<Fit> outside = footprint.devices.front().fit(false);
  REQUIRE(outside.has_value());
  CHECK_FALSE(outside->fits);
  CHECK(module->main().name_of(outside->node) == "y");
  CHECK(outside->asked == 16 * 1024 * 1024);
  CHECK(outside->left < outside->asked);
  CHECK(outside->step == 1);
  CHECK(footprint.devices.front().peak(MemoryMetric::kReserved, false)->cut);
  CHECK_FALSE(footprint.devices.front().peak(MemoryMetric::kIdeal, false)->cut);
}

TEST_CASE("footprint: of more devices than are measured those with the largest ideal peaks are", "[memory]") {
  for (const size_t more : {size_t{0}, size_t{1}, size_t{44}}) {
    const size_t num_devices = kMaxMeasuredDevices + more;
    std::string text = "fxg 0\ngraph @main {\n";
    for (size_t i = 1; i <= num_devices; ++i) {
      const std::string number = std::to_string(i);
      text += "  %n" + number + ": f32[" + number + "]@cuda:" + number + " = aten.zeros.default([" + number + "])\n";
    }
    const std::unique_ptr<Module> module = parse(text + "  return (%n1,)\n}\n");
    const Footprint footprint = measured(*module, std::nullopt);
    CAPTURE(more);
    REQUIRE(footprint.memory.devices.size() == num_devices);
    REQUIRE(footprint.devices.size() == kMaxMeasuredDevices);
    CHECK(footprint.num_unmeasured() == more);
    for (size_t i = 0; i < num_devices; ++i) {
      const int64_t bytes = static_cast<int64_t>(num_devices - i) * 4;
      CHECK(footprint.memory.devices[i].bytes == bytes);
      if (i < kMaxMeasuredDevices) CHECK(footprint.devices[i].ideal.bytes == bytes);
    }
  }
}

TEST_CASE("footprint: what is drawn is one step, the first where memory ran out in it", "[memory]") {
  const std::unique_ptr<Module> module = parse(
      "fxg 0\ngraph @main {\n  output_spec {role=gradient, of=\"w\"}\n"
      "  %w: f32[524288]@cuda:0 = placeholder() {input={role=parameter, fqn=\"w\"}}\n"
      "  %g: f32[524288]@cuda:0 = aten.exp.default(%w)\n  return (%g,)\n}\n");
  MeasureOptions options;
  options.memory.derive_classes = true;
  options.timelines = true;
  options.trace.steady = SteadyState();
  const DeviceFootprint whole = measure(module->main(), options).devices.front();
  CHECK(whole.timeline.step == 0);
  CHECK(whole.timeline.live.ideal.front() > 2 * 1024 * 1024);  // includes the optimizer's state
  options.device_bytes = 3 * 1024 * 1024;
  const DeviceFootprint cut = measure(module->main(), options).devices.front();
  CHECK(cut.timeline.step == 1);
  CHECK(cut.timeline.live.ideal.front() == 2 * 1024 * 1024);
}

TEST_CASE("footprint: what a forward graph returns for backward is saved", "[memory]") {
  const auto kind_of_y = [](const std::string& role) {
    const std::unique_ptr<Module> module =
        parse("fxg 0\ngraph @main {kind=forward} {\n  output_spec {role=" + role +
              "}\n  %x: f32[4]@cpu = placeholder()\n  %y: f32[4]@cpu = aten.exp.default(%x)\n  return (%y,)\n}\n");
    const Footprint footprint = measured(*module, std::nullopt);
    const NodeId y = module->main().find(module->strings.find("y"));
    return footprint.memory.lifetimes[footprint.storages.buffers(y)[0].index()].kind;
  };
  CHECK(kind_of_y("saved_value") == MemoryClass::kSavedValue);
  CHECK(kind_of_y("user") == MemoryClass::kTemporary);
}

TEST_CASE("top-level graphs: all that nothing names", "[graph]") {
  const auto names = [](const std::string& main, const std::string& other) {
    const std::unique_ptr<Module> module =
        parse("fxg 0\ngraph @main" + main + "}\ngraph @other" + other + " {\n  %a: f32[4] = placeholder()\n}\n");
    std::string list;
    for (const GraphId id : top_level_graphs(*module)) {
      list += std::string(module->text(module->graph(id).name())) + " ";
    }
    return list;
  };
  const std::string plain = " {\n  %x: f32[4] = placeholder()\n";
  CHECK(names(plain, "") == "main other ");
  CHECK(names(plain, " {kind=subgraph}") == "main ");
  CHECK(names(plain, " {owner=\"x\"}") == "main ");
  CHECK(names(" {\n  attribute {path=\"body\", graph=\"other\"}\n  %x: f32[4] = placeholder()\n", "") == "main ");
  CHECK(names(plain + "  %y: f32[4] = higher_order.cond(%x, @other, @other, ())\n", "") == "main ");
  CHECK(names(plain + "  %y: f32[4] = f.g(%x, [1, (@other,)])\n", "") == "main ");
}

TEST_CASE("prepare: what is broken is told and left alone, and twice is as once", "[memory]") {
  const std::unique_ptr<Module> broken = parse(
      "fxg 0\ngraph @g {\n  %x: f32[4] = placeholder()\n  %b: f32[4] = aten.neg.default(%a)\n"
      "  %a: f32[4] = aten.neg.default(%x)\n  return (%b,)\n}\n");
  CHECK_FALSE(prepare(*broken).broken.empty());
  const std::unique_ptr<Module> module = parse(kStep);
  CHECK(prepare(*module).broken.empty());
  const std::string once = print_text(*module);
  CHECK(prepare(*module).completed == 0);
  CHECK(print_text(*module) == once);
}

}  // namespace
}  // namespace fxopt
