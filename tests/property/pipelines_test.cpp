#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/io/io.h"
#include "ir/prepare.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/registry.h"
#include "tests/catch.h"
#include "tests/testdata/files.h"

// Random pipelines with every option of every pass, over graphs of which little is recorded: no types, no hints, no phases, no roles.

namespace fxopt {
namespace {

using Dice = std::mt19937_64;

size_t roll(Dice& dice, size_t sides) { return static_cast<size_t>(dice() % sides); }

template <size_t N>
std::string one_of(Dice& dice, const std::array<const char*, N>& words) {
  return words[roll(dice, N)];
}

// A value that the option may have, at the ends of its type too. A selection names what may be there.
std::string value_of(const PassOptionInfo& option, Dice& dice) {
  const std::string& type = option.type;
  if (type == "bool") return one_of(dice, std::array{"true", "false"});
  if (type == "int") return one_of(dice, std::array{"0", "1", "2", "7", "-1", "9223372036854775807"});
  if (type == "float") return one_of(dice, std::array{"0", "0.05", "1", "-1", "1e300"});
  if (type == "bytes") return one_of(dice, std::array{"0", "1", "4096", "500MiB", "1000GiB"});
  if (type == "enum") return option.choices[roll(dice, option.choices.size())];
  return one_of(dice, std::array{"layers.0", "aten.mm.default", "layers.*::aten.silu.default", "nothing"});
}

std::string random_pass(const PassInfo& pass, Dice& dice) {
  std::string text(pass.name);
  std::string options;
  for (const PassOptionInfo& option : pass.options) {
    if (roll(dice, 3) != 0) continue;
    options += (options.empty() ? "" : ",") + option.name + "=\"" + value_of(option, dice) + "\"";
  }
  return options.empty() ? text : text + "{" + options + "}";
}

std::string random_pipeline(Dice& dice) {
  const std::vector<PassInfo>& passes = pass_registry();
  std::string text;
  for (size_t i = 0, count = 1 + roll(dice, 4); i < count; ++i) {
    text += (text.empty() ? "" : ",") + random_pass(passes[roll(dice, passes.size())], dice);
  }
  return text;
}

// Takes out records of that kind.
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
