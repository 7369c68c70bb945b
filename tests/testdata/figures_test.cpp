// Figures of real graphs that were obtained without this program.
//
// Peaks come from PyTorch's own estimator on re-propagated fake tensors, and from a counter over
// live fake storages, both in Python; see scripts/peers. The estimator counts each wait with its
// own storage, which makes no difference at these peaks.

#include <memory>
#include <string>

#include "ir/alias/storages.h"
#include "ir/memory/memory.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

int64_t ideal_peak(const Module& module) {
  const StorageMap storages(module.main());
  return analyze_memory(module.main(), storages).peak_bytes();
}

RunReport run(Module& module, const std::string& passes) {
  return must(run_pipeline(module, must(parse_pipeline(passes))));
}

int64_t count_calls(const Graph& graph, std::string_view target) {
  int64_t count = 0;
  for (const NodeId node : graph.nodes()) {
    if (graph[node].is_call() && graph.module().text(graph.module().target(graph[node].target).name) == target) ++count;
  }
  return count;
}

TEST_CASE("testdata: ideal peaks equal those counted by PyTorch, to the byte", "[testdata]") {
  const struct {
    const char* file;
    int64_t bytes;
  } known[] = {
      {"llama1b.pb", 15529628036},
      {"dumps/llama1B_sdpa_dp1_tp1_b2_tagged_default.fxg.zst", 20229108108},
      {"dumps/llama1B_sdpa_dp1_tp1_b2_torchremat_default.fxg.zst", 15178490252},
      {"dumps/c_llama8B_sdpa_dp16_tp8_flb.fxg.zst", 25170200332},
      {"dumps/llama8B_sdpa_dp16_tp8_b2_torchremat_default.fxg.zst", 10002368268},
      {"dumps/llama70B_flex_dp16_tp8_b2_torchremat_default.fxg.zst", 36498837516},
  };
  for (const auto& row : known) {
    INFO(row.file);
    CHECK(ideal_peak(*load_testdata(row.file)) == row.bytes);
  }
}

TEST_CASE("testdata: the tagged product of issue 178935 is computed again", "[testdata]") {
  const std::unique_ptr<Module> module = load_testdata("issue178935_selective.pb");
  CHECK(count_calls(module->main(), "aten.mm.default") == 5);
  run(*module, "infer-phase,remat,dce");
  const Graph& graph = module->main();
  CHECK(count_calls(graph, "aten.mm.default") == 6);
  NodeId node = graph.find(module->strings.find("gelu_backward"));
  REQUIRE(node.is_valid());
  node = graph.arg(node, 1)->as_node();
  while (graph.op(node).view == ViewKind::kView) node = graph.arg(node, 0)->as_node();
  CHECK(module->text(module->target(graph[node].target).name) == "aten.mm.default");
  CHECK(graph[node].phase == Phase::kBackward);
  REQUIRE(graph.extra(node) != nullptr);
  REQUIRE(graph.extra(node)->origins.size() == 1);
  CHECK(graph.extra(node)->origins[0].kind == OriginKind::kRecomputed);
  const NodeId tagged = graph.find(module->strings.find("mm"));
  CHECK(graph.extra(node)->origins[0].uid == graph[tagged].uid);
}

TEST_CASE("testdata: vanilla checkpointing of issue 178935 keeps its six products", "[testdata]") {
  for (const char* passes : {"infer-phase,remat,dce", "cse,infer-phase,remat,dce", "cse"}) {
    const std::unique_ptr<Module> module = load_testdata("issue178935_vanilla.pb");
    run(*module, passes);
    CHECK(count_calls(module->main(), "aten.mm.default") == 6);
  }
}

TEST_CASE("testdata: checkpointing lowers the Llama step's peak as counted by PyTorch", "[testdata]") {
  const struct {
    const char* passes;
    int64_t bytes;
  } known[] = {
      {"canonicalize,cse,sac{policy=per-op},remat,dce", 10747580804},
      {"canonicalize,cse,sac{policy=full},remat,dce", 9044692996},
      {"sac{policy=per-op},remat{compat=torch},dce", 10747580804},
  };
  for (const auto& row : known) {
    INFO(row.passes);
    const std::unique_ptr<Module> module = load_testdata("llama1b.pb");
    run(*module, row.passes);
    CHECK(ideal_peak(*module) == row.bytes);
  }
}

}  // namespace
}  // namespace fxopt
