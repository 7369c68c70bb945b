#include "ir/memory/ranges.h"

#include <memory>
#include <string>

#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/replaced.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

struct Ranges {
  std::unique_ptr<Module> module;
  StorageMap storages;
  MemoryOptions options;
  MemoryReport report;
  SizeRanges ranges;

  explicit Ranges(std::unique_ptr<Module> given, MemoryOptions with = {})
      : module(std::move(given)),
        storages(module->main()),
        options(std::move(with)),
        report(analyze_memory(module->main(), storages, options)),
        ranges(size_ranges(module->main(), storages, options)) {}

  // The peak range of the only device.
  std::optional<PeakRange> find_peak(const TraceOptions& how = {}) const {
    REQUIRE(report.devices.size() == 1);
    const MemoryTrace trace = trace_memory(module->main(), storages, report, report.devices[0].device, options, how);
    return ideal_peak_range(ranges, storages, report, trace);
  }
  PeakRange peak(const TraceOptions& how = {}) const {
    const std::optional<PeakRange> found = find_peak(how);
    REQUIRE(found.has_value());
    return *found;
  }
};

// At both ends 4 s0 + 16 s0 bytes are live at once.
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
  narrow.symbols[s0] = 16;
  const Ranges ranges(parse(kGrowing), narrow);
  CHECK(ranges.peak().min == 16 * 20);
  CHECK(ranges.peak().max == 64 * 20);  // the file's bound is tighter
  MemoryOptions fixed;
  fixed.symbols[s0] = 32;
  const Ranges one(parse(kGrowing), fixed);
  CHECK_FALSE(one.find_peak().has_value());
  REQUIRE(one.ranges.symbols.size() == 1);
  CHECK_FALSE(one.ranges.symbols[0].is_hint);
  CHECK(one.ranges.symbols[0].range == ValueRange{32, 32});
}

TEST_CASE("ranges: the ends may be reached at different nodes", "[memory][ranges]") {
  // With a small s0 the constant part is the peak, with a large one the symbolic part.
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

TEST_CASE("ranges: a later step has what lives between steps, too", "[memory][ranges]") {
  // For a given value both ends are the peak of the trace: parameter, kept gradient, two tensors of
  // Adam state.
  const char* text = R"(
  symbol {name="s0", kind=backed, min=2, max=64, hint=8}
  graph @main {
    output_spec {role=gradient, of="p"}
    %p: f32[100] = placeholder() {input={role=parameter}}
    %x: f32[s0] = placeholder()
    %s: f32[] = aten.sum.default(%x)
    %g: f32[100] = aten.mul.Tensor(%p, %s)
    return (%g,)
  })";
  TraceOptions steady;
  steady.steady = SteadyState();
  MemoryOptions options;
  options.derive_classes = true;
  const Ranges ranges(parse(text), options);
  const int64_t once = 400 + 4 + 400;  // %p, %s, %g
  CHECK(ranges.peak().min == once + 8);
  CHECK(ranges.peak().max == once + 256);
  CHECK(ranges.peak(steady).min == once + 8 + 3 * 400);
  CHECK(ranges.peak(steady).max == once + 256 + 3 * 400);
}

TEST_CASE("ranges: a hint that the file has outside of the range is within", "[memory][ranges]") {
  const Ranges ranges(parse(replaced(kGrowing, "min=2", "min=16")));
  CHECK(ranges.peak().min == ranges.report.peak_bytes());
  CHECK(ranges.peak().max == 64 * 20);
}

TEST_CASE("ranges: a stride below 0 is none of a tensor", "[memory][ranges]") {
  const Ranges ranges(parse(R"(
  symbol {name="s0", kind=backed, min=2, max=64, hint=2}
  graph @main {
    %x: f32[4](s0 - 10)+100 = placeholder()
    return %x
  })"));
  CHECK(ranges.report.unknown_buffers == 1);
  CHECK(ranges.peak().min == 404);
  CHECK(ranges.peak().max == (100 + 3 * 54 + 1) * 4);
}

TEST_CASE("ranges: a graph of plain numbers has none", "[memory][ranges]") {
  const Ranges ranges(parse(R"(graph @main {
    %x: f32[8] = placeholder()
    %a: f32[8] = aten.neg.default(%x)
    return %a
  })"));
  CHECK_FALSE(ranges.find_peak().has_value());
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
