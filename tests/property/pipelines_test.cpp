#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ir/io/io.h"
#include "ir/prepare.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/property/random_pipeline.h"
#include "tests/testdata/files.h"

// Random pipelines with every option of every pass, over graphs that lack types, hints, phases or
// roles.

namespace fxopt {
namespace {

// Removes records of the given kinds.
enum Bare : unsigned { kTypes = 1, kHints = 2, kPhases = 4, kRoles = 8 };
void strip(Module& module, unsigned what) {
  for (Symbol& symbol : module.symbols) {
    if ((what & kHints) != 0) symbol.hint.reset();
  }
  for (const GraphId id : module.graphs()) {
    Graph& graph = module.graph(id);
    if ((what & kRoles) != 0) {
      graph.outputs.clear();
      graph.kind = graph.kind == GraphKind::kSubgraph ? graph.kind : GraphKind::kUnspecified;
    }
    for (const NodeId node : graph.nodes()) {
      if ((what & kTypes) != 0) graph[node].value = ValueId();
      if ((what & kPhases) != 0) graph[node].phase = Phase::kUnspecified, graph[node].phase_markers = 0;
      if ((what & kRoles) != 0 && graph.extra(node) != nullptr) graph.mutable_extra(node).input.reset();
    }
  }
}

TEST_CASE("pipelines: no option of a pass stops at what is not recorded", "[passes][property]") {
  constexpr std::array kFiles = {"issue178935_selective.pb", "built_hsdp.pb.zst",       "gpt2_joint_twin.pb.zst",
                                 "pair_forward_twin.pb.zst", "llama8b_flb_twin.pb.zst", "llama8b_joint_twin.pb.zst",
                                 "exported_twin.pb.zst"};
  constexpr size_t kPipelines = 1500;
  Dice dice(46);
  size_t ran = 0, refused = 0;
  for (size_t i = 0; i < kPipelines; ++i) {
    const std::string file = kFiles[i % kFiles.size()];
    const unsigned bare =
        roll(dice, 3) == 0 ? 1 + static_cast<unsigned>(roll(dice, 15)) : kTypes | static_cast<unsigned>(roll(dice, 16));
    std::string text = random_pipeline(dice);
    const Result<Pipeline> pipeline = parse_pipeline(text);
    if (!pipeline.ok()) {
      CHECK(pipeline.error().code != ErrorCode::kInternal);
      ++refused;
      continue;
    }
    const std::unique_ptr<Module> module = load_testdata(file);
    strip(*module, bare);
    if (!prepare(*module).broken.empty()) continue;
    INFO(file << ", without " << bare << ": " << text);
    RunOptions options;
    options.numerics = Numerics::kChangesNumerics;
    const Result<RunReport> report = run_pipeline(*module, *pipeline, options);
    ++(report.ok() ? ran : refused);
    if (!report.ok()) CHECK(format_error(report.error()).find("mistake in fxopt") == std::string::npos);
  }
  std::printf("pipelines over bare graphs: %zu ran, %zu refused\n", ran, refused);
  CHECK(ran > kPipelines / 3);
}

}  // namespace
}  // namespace fxopt
