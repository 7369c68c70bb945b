// Facts of a graph are computed on first use, and again only after the graph has changed.
#include "ir/step/facts.h"

#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

constexpr const char* kGraph = R"(graph @g {kind=forward} {
  %x: f32[4] = placeholder()
  %a: f32[4] = aten.neg.default(%x)
  %b: f32[4] = aten.neg.default(%x)
  %c: f32[4] = aten.add.Tensor(%a, %b)
  return (%c,)
}
)";

TEST_CASE("facts: made when asked for, kept until the graph changes", "[facts]") {
  const std::unique_ptr<Module> module = parse(kGraph);
  ModuleFacts facts(*module);
  Facts& asked = facts.of(module->main());
  CHECK(&asked == &facts.of(module->main()));
  CHECK(facts.counts().storages == 0);
  const StorageMap* storages = &asked.storages();
  CHECK(&asked.storages() == storages);
  CHECK(asked.phases().phase.size() > 0);
  CHECK(facts.counts().storages == 1);
  CHECK(facts.counts().phases == 1);
  CHECK(facts.counts().modes == 0);
  asked.forget();
  CHECK(asked.storages().num_buffers() == 4);
  CHECK(facts.counts().storages == 2);
}

TEST_CASE("facts: storages are not made for phases that are all marked", "[facts]") {
  const std::unique_ptr<Module> module = parse(
      "graph @g {\n  %x: f32[4] = placeholder()\n  %a: f32[4] = aten.neg.default(%x) {phase=forward}\n"
      "  return (%a,)\n}\n");
  ModuleFacts facts(*module);
  CHECK(facts.of(module->main()).phases().has_markers);
  CHECK(facts.counts().storages == 0);
}

TEST_CASE("facts: a pipeline makes them anew only after a pass that changed the graph", "[facts]") {
  const std::unique_ptr<Module> module = parse(kGraph);
  PassContext context(*module);
  const Pipeline pipeline = parse_pipeline("canonicalize,cse,remat,cse,canonicalize").value();
  const RunReport report = run_pipeline(*module, pipeline, RunOptions(), context).value();
  CHECK(report.steps[1].result.changed());
  CHECK_FALSE(report.steps[3].result.changed());
  CHECK(context.facts.counts().storages == 2);
  CHECK(context.facts.counts().phases == 2);
}

}  // namespace
}  // namespace fxopt
