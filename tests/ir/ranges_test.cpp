#include "ir/memory/ranges.h"

#include <memory>
#include <string>

#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

struct Ranges {
  std::unique_ptr<Module> module;
  MemoryReport report;
  MemoryRanges ranges;

  explicit Ranges(std::unique_ptr<Module> given, const MemoryOptions& options = {}) : module(std::move(given)) {
    const StorageMap storages(module->main());
    report = analyze_memory(module->main(), storages, options);
    ranges = memory_ranges(module->main(), storages, report, options);
  }

  // Of the one device.
  PeakRange peak() const {
    REQUIRE(ranges.devices.size() == 1);
    return ranges.devices[0];
  }
};

std::unique_ptr<Module> parse(const std::string& text) {
  Result<std::unique_ptr<Module>> module = parse_text(text, "test");
  if (!module.ok()) FAIL(format_error(module.error()));
  return std::move(*module);
}

// Sizes at the ends: 4 s0 + 16 s0 bytes live at once.
constexpr const char* kGrowing = R"(
  symbol {name="s0", kind=backed, min=2, max=64, hint=8}
  graph @main {
    %x: f32[s0] = placeholder()
    %a: f32[s0, 4](4, 1) = aten.expand_copy.default(%x, [sym(s0), 4])
    return %a
  })";

TEST_CASE("ranges: the peak at both ends of a symbol", "[memory][ranges]") {
  const Ranges ranges(parse(kGrowing));
  CHECK(ranges.report.peak_bytes() == 8 * 20);
  CHECK(ranges.peak().min == 2 * 20);
  CHECK(ranges.peak().max == 64 * 20);
  REQUIRE(ranges.ranges.symbols.size() == 1);
  CHECK(ranges.ranges.symbols[0].value == 8);
  CHECK(ranges.ranges.symbols[0].is_hint);
  CHECK(ranges.ranges.symbols[0].range == ValueRange{2, 64});
}

TEST_CASE("ranges: narrower ones, and a value", "[memory][ranges]") {
  const std::unique_ptr<Module> module = parse(kGrowing);
  const StringId s0 = module->strings.find("s0");
  MemoryOptions narrow;
  narrow.ranges[s0] = {16, 1000};
  const Ranges ranges(parse(kGrowing), narrow);
  CHECK(ranges.peak().min == 16 * 20);
  CHECK(ranges.peak().max == 64 * 20);  // the file's end is the nearer one
  MemoryOptions fixed;
  fixed.symbols[s0] = 32;
  const Ranges one(parse(kGrowing), fixed);
  CHECK(one.ranges.devices.empty());
  REQUIRE(one.ranges.symbols.size() == 1);
  CHECK_FALSE(one.ranges.symbols[0].is_hint);
  CHECK(one.ranges.symbols[0].range == ValueRange{32, 32});
}

TEST_CASE("ranges: the ends may be reached at different nodes", "[memory][ranges]") {
  // With a small s0 the constant part is the peak, with a large one the other.
  const Ranges ranges(parse(R"(
  symbol {name="s0", kind=backed, min=1, max=100, hint=8}
  graph @main {
    %x: f32[1] = placeholder()
    %a: f32[50] = aten.expand_copy.default(%x, [50])
    %b: f32[1] = aten.sum.dim_IntList(%a, [0], True)
    %c: f32[s0] = aten.expand_copy.default(%b, [sym(s0)])
    return %c
  })"));
  CHECK(ranges.peak().min == 4 + 200 + 4);
  CHECK(ranges.peak().max == 4 + 4 + 400);
}

TEST_CASE("ranges: a symbol without a largest value, and one without any", "[memory][ranges]") {
  const Ranges ranges(parse(R"(
  symbol {name="u0", kind=unbacked, min=0}
  graph @main {
    %x: f32[8] = placeholder()
    %a: f32[u0] = aten.expand_copy.default(%x, [sym(u0)])
    return %a
  })"));
  CHECK(ranges.report.unknown_buffers == 1);
  CHECK(ranges.peak().min == 32);
  CHECK_FALSE(ranges.peak().max.has_value());
  REQUIRE(ranges.ranges.symbols.size() == 1);
  CHECK_FALSE(ranges.ranges.symbols[0].value.has_value());
}

TEST_CASE("ranges: a size that may be 0 makes an empty tensor, whatever the others are", "[memory][ranges]") {
  const Ranges ranges(parse(R"(
  symbol {name="u0", kind=unbacked, min=0, max=3}
  graph @main {
    %x: f32[8] = placeholder()
    %a: f32[u0, 5](5, 1) = aten.expand_copy.default(%x, [sym(u0), 5])
    return %a
  })"));
  CHECK(ranges.peak().min == 32);
  CHECK(ranges.peak().max == 32 + 60);
}

TEST_CASE("ranges: a graph of plain numbers has none", "[memory][ranges]") {
  const Ranges ranges(parse(R"(graph @main {
    %x: f32[8] = placeholder()
    %a: f32[8] = aten.neg.default(%x)
    return %a
  })"));
  CHECK(ranges.ranges.devices.empty());
  CHECK(ranges.ranges.symbols.empty());
}

TEST_CASE("testdata: the ends of a range are the peaks that the ends of its symbols give", "[testdata][ranges]") {
  for (const char* file : {"exported.pb.zst", "exported_twin.pb.zst", "pair_forward.pb.zst", "pair_backward.pb.zst"}) {
    INFO(file);
    const Ranges ranges(load_testdata(file));
    REQUIRE_FALSE(ranges.ranges.symbols.empty());
    MemoryOptions low, high;
    for (const SizeSymbol& symbol : ranges.ranges.symbols) {
      low.symbols[symbol.name] = symbol.range.min;
      high.symbols[symbol.name] = symbol.range.max;
    }
    CHECK(ranges.peak().min == Ranges(load_testdata(file), low).report.peak_bytes());
    CHECK(ranges.peak().max == Ranges(load_testdata(file), high).report.peak_bytes());
  }
}

}  // namespace
}  // namespace fxopt
