// Costs of calls, and the basis of their seconds.
#include "ir/cost/costs.h"

#include "cli/device.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

constexpr const char* kGraph = R"(process_group {uid="7", ranks=[0, 1, 2, 3]}
graph @main {
  %x: f32[1024, 1024] = placeholder()
  %t: f32[1024, 1024](1, 1024) = aten.t.default(%x)
  %m: f32[1024, 1024] = aten.mm.default(%x, %t)
  %n: f32[1024, 1024] = aten.mm.default(%x, %t)
  %s: f32[2] = aten.full.default([2], 1.0)
  %g: f32[4096, 1024] = _c10d_functional.all_gather_into_tensor.default(%m, 4, "7")
  %w: f32[4096, 1024] = _c10d_functional.wait_tensor.default(%g)
  %h: f32[8192, 1024] = _c10d_functional.all_gather_into_tensor.default(%n, 4, "9")
  %c = other.op.default(%w)
  return (%m, %n, %s, %w, %h, %c)
}
)";

struct Priced {
  std::unique_ptr<Module> module = parse(kGraph);
  std::unique_ptr<DeviceProfile> profile;
  Measurement measurement;

  explicit Priced(const std::string& device) { profile = must(load_device_profile(device)); }
  CostTable table() const {
    return CostTable(module->main(), {profile.get(), measurement.graphs.empty() ? nullptr : &measurement, {}});
  }
  NodeId node(std::string_view name) const { return module->main().find(module->strings.find(name)); }
  uint64_t uid(std::string_view name) const { return module->main()[node(name)].uid; }
  Cost of(std::string_view name) const { return table().of(node(name)); }
};

CostBasis basis_of(const Cost& cost) {
  for (size_t i = 0; i < kNumCostBases; ++i) {
    if (cost.kernels[i] + cost.collectives[i] > 0) return static_cast<CostBasis>(i);
  }
  FAIL("not a call");
  return CostBasis::kUnknown;
}

TEST_CASE("costs: a kernel takes what its operations, its bytes or the shortest kernel take") {
  const Priced h100("h100");
  const Cost mm = h100.of("m");
  CHECK(mm.flops == int64_t{2} << 30);
  CHECK(mm.bytes == 3 * 4096 * 1024);
  CHECK(mm.seconds == Approx((int64_t{2} << 30) / 66.9e12));
  CHECK(basis_of(mm) == CostBasis::kRoofline);
  CHECK(h100.of("s").seconds == Approx(1e-6));  // device.kernel
  CHECK(basis_of(h100.of("t")) == CostBasis::kFree);
  CHECK(basis_of(h100.of("w")) == CostBasis::kFree);
  CHECK(h100.of("w").seconds == 0);
  CHECK(h100.of("x").num_kernels() == 0);
  CHECK(basis_of(h100.of("c")) == CostBasis::kUnknown);
  CHECK(h100.of("c").unknown == 1);
}

TEST_CASE("costs: collectives take the time of links, where their group is known") {
  const Priced h100("h100");
  const Cost gather = h100.of("g");
  CHECK(basis_of(gather) == CostBasis::kLinks);
  CHECK(gather.seconds == 0);
  CHECK(gather.link_seconds == h100.table().collective(CollectiveKind::kAllGather, {0, 1, 2, 3}, 4 << 20).link_seconds);
  CHECK(gather.link_seconds > 3.0 * (4 << 20) / 345e9);
  CHECK(basis_of(h100.of("h")) == CostBasis::kUnknown);  // no group "9" is listed
  const Cost all = h100.table().all();
  CHECK(all.num_collectives() == 2);
  CHECK(all.num_collectives(CostBasis::kUnknown) == 1);
  CHECK(all.num_kernels() == 4);  // two mm, full, the unknown one
}

TEST_CASE("costs: without a device nothing has seconds, and work is known") {
  const Priced none("");
  CHECK(none.of("m").flops == int64_t{2} << 30);
  CHECK(none.of("m").seconds == 0);
  CHECK(basis_of(none.of("m")) == CostBasis::kUnknown);
  CHECK(basis_of(none.of("g")) == CostBasis::kUnknown);
  CHECK_FALSE(CostSources{none.profile.get(), nullptr, {}}.has_seconds());
}

TEST_CASE("costs: what was measured counts for the same node, and for calls that are alike") {
  Priced h100("h100");
  const std::string types = "f32[1024,1024], f32[1024,1024]:1,1024 -> f32[1024,1024]";
  CHECK(call_types(h100.module->main(), h100.node("m"), {}) == types);
  h100.measurement.graphs = {
      {"main", {{h100.uid("m"), "aten.mm.default", types, 2e-4}, {4000, "aten.mm.default", types, 4e-4}}}};
  CHECK(h100.of("m").seconds == 2e-4);
  CHECK(basis_of(h100.of("m")) == CostBasis::kMeasured);
  CHECK(h100.of("n").seconds == Approx(3e-4));  // the mean of the matching calls
  CHECK(h100.of("n").flops == int64_t{2} << 30);
  CHECK(basis_of(h100.of("s")) == CostBasis::kRoofline);

  h100.measurement.graphs = {
      {"other", {{h100.uid("m"), "aten.mm.default", types, 2e-4}, {4000, "aten.mm.default", types, 4e-4}}}};
  CHECK(h100.of("m").seconds == Approx(3e-4));  // uids are those of another graph
  // Another size, another stride, another operator: no match.
  for (const MeasuredCall& call :
       {MeasuredCall{h100.uid("m"), "aten.mm.default", "f32[1024,1024], f32[1024,1024] -> f32[1024,1024]", 1},
        MeasuredCall{h100.uid("m"), "aten.mm.default", "f32[8,8], f32[8,8]:1,8 -> f32[8,8]", 1},
        MeasuredCall{h100.uid("m"), "aten.mm.out", types, 1}}) {
    h100.measurement.graphs = {{"main", {call}}};
    CHECK(basis_of(h100.of("m")) == CostBasis::kRoofline);
  }
}

TEST_CASE("costs: a measured collective scales those of other sizes") {
  Priced h100("h100");
  h100.measurement.graphs = {
      {"main",
       {{h100.uid("g"), "_c10d_functional.all_gather_into_tensor.default", "f32[1024,1024] -> f32[4096,1024]", 1e-3}}}};
  CHECK(h100.of("g").link_seconds == 1e-3);
  CHECK(basis_of(h100.of("g")) == CostBasis::kMeasured);
  const Cost twice = h100.table().collective(CollectiveKind::kAllGather, {0, 1, 2, 3}, 8 << 20);
  CHECK(basis_of(twice) == CostBasis::kScaled);
  CHECK(twice.link_seconds > 1.5e-3);
  CHECK(twice.link_seconds < 2e-3);
  CHECK(basis_of(h100.table().collective(CollectiveKind::kAllGather, {0, 8}, 8 << 20)) == CostBasis::kLinks);
}

}  // namespace
}  // namespace fxopt
