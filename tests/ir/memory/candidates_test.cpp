#include "ir/memory/candidates.h"

#include <memory>
#include <string>
#include <vector>

#include "cli/device.h"
#include "ir/io/io.h"
#include "ir/step/phases.h"
#include "passes/recompute/remat.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/parse.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

struct Candidates {
  std::unique_ptr<Module> module;
  StorageMap storages;
  MemoryReport report;
  std::vector<RecomputeCandidate> list;

  explicit Candidates(std::unique_ptr<Module> given)
      : module(std::move(given)), storages(module->main()), report(analyze()) {
    const std::unique_ptr<DeviceProfile> profile = must(load_device_profile(""));
    CostTable work(module->main(), {profile.get(), nullptr, {}});
    list = recompute_candidates(module->main(), storages, resolve_phases(module->main()), report,
                                report.devices.front().device, place(), work);
  }

  const Graph& graph() const { return module->main(); }
  uint32_t place() const { return graph().position(report.devices.front().node); }
  // "name gain", in order.
  std::vector<std::string> text() const {
    std::vector<std::string> texts;
    for (const RecomputeCandidate& each : list) {
      texts.push_back(std::string(graph().name_of(each.node)) + " " + std::to_string(each.gain()));
    }
    return texts;
  }

 private:
  MemoryReport analyze() const {
    MemoryOptions options;
    options.derive_classes = true;
    return analyze_memory(module->main(), storages, options);
  }
};

// A forward of two calls, a peak between forward and backward, and a backward that reads
// `backward_reads`. %a is a temporary of 4,000 bytes; %b is computed from it.
std::unique_ptr<Module> step(const std::string& b, const std::string& forward_end, const std::string& backward_reads) {
  return parse(R"(graph @main {
    %x: f32[10] = placeholder()
    %a: f32[100, 10](10, 1) = aten.expand_copy.default(%x, [100, 10]) {phase=forward}
    )" + b + R"( {phase=forward}
    %loss: f32[] = aten.sum.default(%b) {phase=forward}
    )" + forward_end +
               R"(
    %peak: f32[100000] = aten.expand_copy.default(%loss, [100000]) {phase=backward}
    %g: f32[] = aten.sum.default(%peak) {phase=backward}
    %d: f32[] = aten.sum.default()" +
               backward_reads + R"() {phase=backward}
    %e: f32[] = aten.add.Tensor(%g, %d) {phase=backward}
    return %e
  })");
}

using Texts = std::vector<std::string>;

// Bytes live on `device` at `node`. The test runs remat with one tag and compares the change with
// the candidate's gain.
int64_t bytes_at(const Graph& graph, std::string_view node, StringId device) {
  const StorageMap storages(graph);
  const uint32_t place = graph.position(graph.find(graph.module().strings.find(node)));
  int64_t bytes = 0;
  for (const Lifetime& life : analyze_memory(graph, storages).lifetimes) {
    const bool is_live = life.first <= place && place <= life.last;
    if (is_live && storages.buffer(life.buffer).device == device) bytes += life.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("candidates: what waits for backward, less what would wait in its stead", "[memory][candidates]") {
  // %b frees 8,000 bytes and keeps %a's 4,000.
  CHECK(Candidates(step("%b: f64[100, 10](10, 1) = aten._to_copy.default(%a, dtype=dtype(f64))", "", "%b")).text() ==
        Texts{"b 4000"});
  // Keeping as many bytes as are freed is no gain.
  CHECK(Candidates(step("%b: f32[100, 10](10, 1) = aten.neg.default(%a)", "", "%b")).text().empty());
  // Its input is live anyway.
  CHECK(Candidates(step("%b: f32[10] = aten.neg.default(%x)", "", "%b")).text() == Texts{"b 40"});
}

TEST_CASE("candidates: what forward still reads at the peak, or backward has read, stays", "[memory][candidates]") {
  const std::string b = "%b: f32[10] = aten.neg.default(%x)";
  CHECK(Candidates(step(b, "%late: f32[] = aten.sum.default(%b) {phase=forward}", "%b")).text() == Texts{"b 40"});
  // A forward use after the peak, which only a changed schedule has.
  CHECK(Candidates(parse(R"(graph @main {
    %x: f32[10] = placeholder()
    %b: f32[10] = aten.neg.default(%x) {phase=forward}
    %peak: f32[100000] = aten.expand_copy.default(%x, [100000]) {phase=forward}
    %loss: f32[] = aten.sum.default(%peak) {phase=forward}
    %c: f32[] = aten.sum.default(%b) {phase=forward}
    %d: f32[] = aten.add.Tensor(%b, %c) {phase=backward}
    return (%d, %loss)
  })"))
            .list.empty());
  // The node at the peak is its first consumer.
  CHECK(Candidates(parse(R"(graph @main {
    %x: f32[10] = placeholder()
    %b: f32[10] = aten.neg.default(%x) {phase=forward}
    %peak: f32[100000] = aten.expand_copy.default(%b, [100000]) {phase=backward}
    %d: f32[] = aten.sum.default(%peak) {phase=backward}
    %e: f32[10] = aten.add.Tensor(%b, %d) {phase=backward}
    return %e
  })"))
            .list.empty());
}

TEST_CASE("candidates: what holds a value at the peak beside its readers", "[memory][candidates]") {
  const auto find = [](const std::string& before, const std::string& after, const std::string& backward) {
    return Candidates(parse(R"(process_group {uid="0", ranks=[0, 1]}
  graph @main {
    %x: f32[10] = placeholder()
    %b: f32[1000] = aten.expand_copy.default(%x, [1000]) {phase=forward}
    %p: (f32[10], i64[10]) = aten.topk.default(%x, 10) {phase=forward}
    )" + before + R"(
    %peak: f32[100000] = aten.expand_copy.default(%x, [100000]) {phase=forward}
    %loss: f32[] = aten.sum.default(%peak) {phase=forward}
    )" + after + "\n" + backward +
                            R"(
    return (%d, %loss, %last)
  })"))
        .text();
  };
  const std::string read = "%d: f32[] = aten.sum.default(%b) {phase=backward}";
  const std::string reduce =
      "%r: f32[1000] = _c10d_functional.all_reduce.default(%b, \"sum\", group(\"0\")) {phase=forward}";
  const std::string wait = "%w: f32[1000] = _c10d_functional.wait_tensor.default(%r) {phase=forward}";
  const std::string last = "%last: f32[] = aten.sum.default(%loss) {phase=forward}";
  // A collective, until its wait: the wait is before the peak, then after it.
  CHECK(find(reduce + "\n" + wait, last, read) == Texts{"b 4000"});
  CHECK(find(reduce, wait + "\n" + last, read).empty());
  // A keep-alive dependency of a node before the peak, then after it.
  const std::string keeper = "%last: f32[] = aten.sum.default(%x) {phase=forward, control=[keep_alive %b]}";
  CHECK(find(keeper, "", read) == Texts{"b 4000"});
  CHECK(find("", keeper, read).empty());
  // The tuple of %p while its elements are taken: by forward after the peak, or only by backward,
  // which would read a copy.
  const std::string first = "%g0: f32[10] = operator.getitem(%p, 0) {phase=forward}";
  const std::string second = "%g1: i64[10] = operator.getitem(%p, 1) {phase=forward}";
  const std::string sum = "%d: i64[] = aten.sum.default(%g1) {phase=backward}";
  CHECK(find(first + "\n" + second, last, sum) == Texts{"p 80"});
  CHECK(find(second, first + "\n" + last, sum).empty());
  const std::string late = "%g1: i64[10] = operator.getitem(%p, 1) {phase=backward}\n";
  CHECK(find(first, last, late + sum) == Texts{"p 120"});
}

TEST_CASE("candidates: what cannot be repeated is none", "[memory][candidates]") {
  CHECK(Candidates(step("%b: f32[10] = aten.rand_like.default(%x)", "", "%b")).list.empty());
  // %x is overwritten between the two.
  CHECK(Candidates(
            step("%b: f32[10] = aten.neg.default(%x)", "%w: f32[10] = aten.relu_.default(%x) {phase=forward}", "%b"))
            .list.empty());
  CHECK(
      Candidates(step("%b: f32[10] = _c10d_functional.all_reduce.default(%x, \"sum\", \"0\")", "", "%b")).list.empty());
}

TEST_CASE("candidates: cheapest first", "[memory][candidates]") {
  // Cost per byte freed: the product computes. Among the others, the one with the larger result per
  // input byte moves less memory.
  const Candidates candidates(parse(R"(graph @main {
    %x: f32[64, 64] = placeholder()
    %y: f32[64] = placeholder()
    %mm: f32[64, 64] = aten.mm.default(%x, %x) {phase=forward}
    %neg: f32[64, 64] = aten.neg.default(%x) {phase=forward}
    %wide: f32[64, 64](64, 1) = aten.expand_copy.default(%y, [64, 64]) {phase=forward}
    %loss: f32[] = aten.sum.default(%y) {phase=forward}
    %peak: f32[100000] = aten.expand_copy.default(%loss, [100000]) {phase=backward}
    %a: f32[64, 64] = aten.add.Tensor(%mm, %neg) {phase=backward}
    %b: f32[64, 64] = aten.add.Tensor(%a, %wide) {phase=backward}
    return %b
  })"));
  CHECK(candidates.text() == Texts{"wide 16384", "neg 16384", "mm 16384"});
}

TEST_CASE("testdata: a candidate by itself changes the peak's node by what it says", "[testdata][candidates]") {
  for (const char* file : {"llama1b.pb", "gpt2_joint.pb.zst", "resnet50_flb.pb.zst", "llama8b_flb.pb.zst"}) {
    const Candidates candidates(load_testdata(file));
    REQUIRE(candidates.list.size() > 20);
    const StringId device = candidates.report.devices.front().device;
    const std::string peak(candidates.graph().name_of(candidates.report.devices.front().node));
    const int64_t before = bytes_at(candidates.graph(), peak, device);
    // From the cheapest to the most expensive.
    for (size_t i = 0; i < candidates.list.size(); i += candidates.list.size() / 8) {
      const RecomputeCandidate& candidate = candidates.list[i];
      const std::string name(candidates.graph().name_of(candidate.node));
      INFO(file << ", %" << name);
      const std::unique_ptr<Module> tagged = load_testdata(file);
      tagged->main()[tagged->main().find(tagged->strings.find(name))].tag = Tag::kMustRecompute;
      PassContext context(*tagged);
      REQUIRE(remat(tagged->main(), RematOptions(), context).ok());
      CHECK(before - bytes_at(tagged->main(), peak, tagged->strings.find(candidates.module->text(device))) ==
            candidate.gain());
    }
  }
}

}  // namespace fxopt
