// Tags of real graphs: the forecast for a tagged node equals its verdict after remat, and a missing
// marker never makes a tag ineffective.

#include <map>
#include <memory>
#include <string>

#include "ir/io/control_deps.h"
#include "passes/pipeline/pipeline.h"
#include "passes/recompute/verdicts.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

void run_passes(Module& module, const std::string& passes) { must(run_pipeline(module, must(parse_pipeline(passes)))); }

// The forecast by uid, for tagged nodes of the main graph without a verdict.
std::map<uint64_t, TagVerdict> foretell(const Graph& graph) {
  const TagForecast forecast = forecast_tags(graph, RematOptions());
  std::map<uint64_t, TagVerdict> verdicts;
  for (const NodeId node : graph.nodes()) {
    const NodeExtra* extra = graph.extra(node);
    const bool is_judged = extra != nullptr && extra->verdict.has_value();
    if (graph[node].tag != Tag::kNone && !is_judged) verdicts[graph[node].uid] = forecast.verdicts[node];
  }
  return verdicts;
}

std::map<uint64_t, TagVerdict> written(const Module& module) {
  const Graph& graph = module.main();
  std::map<uint64_t, TagVerdict> verdicts;
  for (const NodeId node : graph.nodes()) {
    const NodeExtra* extra = graph.extra(node);
    if (extra != nullptr && extra->verdict.has_value()) verdicts[graph[node].uid] = *extra->verdict;
  }
  for (const ErasedNode& erased : module.erased) {
    if (erased.graph == graph.name() && erased.verdict.has_value()) verdicts[erased.uid] = *erased.verdict;
  }
  return verdicts;
}

size_t count_nodes(const Module& module, std::string_view target) {
  size_t count = 0;
  for (const NodeId node : module.main().nodes()) {
    if (module.main()[node].is_call() && module.main().op(node).name == target) ++count;
  }
  return count;
}

TEST_CASE("testdata: what is foretold of each tag is its verdict after remat", "[testdata]") {
  size_t tags = 0;
  for (const std::string& file : testdata_files()) {
    INFO(file);
    const std::unique_ptr<Module> module = load_testdata(file);
    lower_control_deps(*module);
    run_passes(*module, "sac{policy=full}");
    const std::map<uint64_t, TagVerdict> predicted = foretell(module->main());
    run_passes(*module, "remat");
    const std::map<uint64_t, TagVerdict> actual = written(*module);
    size_t differ = 0;
    for (const auto& [uid, verdict] : predicted) {
      const auto found = actual.find(uid);
      if (found == actual.end() || found->second.verdict != verdict.verdict || found->second.rule != verdict.rule)
        ++differ;
    }
    CHECK(differ == 0);
    tags += predicted.size();
  }
  if (has_all_testdata()) CHECK(tags > 100000);
}

TEST_CASE("testdata: an unmarked graph is recomputed without infer-phase in front", "[testdata]") {
  for (const char* passes : {"remat", "remat,dce", "canonicalize,cse,remat,dce", "infer-phase,remat,dce",
                             "infer-phase,canonicalize,cse,remat,dce"}) {
    INFO(passes);
    const std::unique_ptr<Module> module = load_testdata("issue178935_selective.pb");
    REQUIRE(count_nodes(*module, "aten.mm.default") == 5);
    run_passes(*module, passes);
    CHECK(count_nodes(*module, "aten.mm.default") == 6);
  }
}

}  // namespace
}  // namespace fxopt
