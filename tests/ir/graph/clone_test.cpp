// Module::clone(): a copy that prints the same bytes, numbers like the original and shares nothing
// with it.

#include <memory>
#include <string>

#include "core/check.h"
#include "ir/graph/module.h"
#include "ir/io/io.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/ir/sample_module.h"
#include "tests/must.h"
#include "tests/parse.h"
#include "tests/property/random_module.h"

namespace fxopt {
namespace {

std::string printed(const Module& module, Format format) { return must(print_module(module, format)); }

std::string all_forms(const Module& module) {
  return printed(module, Format::kPb) + printed(module, Format::kText) + printed(module, Format::kJson);
}

TEST_CASE("clone: every field of the schema is copied", "[clone]") {
  const std::unique_ptr<Module> module = make_sample_module();
  std::unique_ptr<Module> copy = module->clone();
  CHECK(all_forms(*copy) == all_forms(*module));
  CHECK(all_forms(*copy->clone()) == all_forms(*module));
}

TEST_CASE("clone: a copy outlives its original, and knows the operators that the file describes", "[clone]") {
  std::unique_ptr<Module> module = make_sample_module();
  const std::string text = all_forms(*module);
  const std::unique_ptr<Module> copy = module->clone();
  for (size_t i = 0; i < module->num_targets(); ++i) {
    const Op& mine = *module->target(TargetId(i)).op;
    const Op& its = *copy->target(TargetId(i)).op;
    CHECK(its.name == mine.name);
    const bool is_shared = find_builtin_op(mine.name) != nullptr || mine.name == opaque_op().name;
    CHECK((&its == &mine) == is_shared);
  }
  module.reset();
  CHECK(all_forms(*copy) == text);
}

TEST_CASE("clone: ids are equal, and what is made new is numbered alike", "[clone]") {
  const std::unique_ptr<Module> module = parse(
      "fxg 0\ngraph @main {\n  %x: f32[4]@cpu = placeholder()\n  %y: f32[4]@cpu = aten.exp.default(%x)\n"
      "  %output = output(%y)\n}\n");
  Graph& graph = module->main();
  const NodeId y = graph.find(module->strings.find("y"));
  const NodeId gone = graph.clone_node(y, NodeId(), "y", IdMap<NodeId, NodeId>());
  graph.erase(gone);
  const std::unique_ptr<Module> copy = module->clone();
  Graph& other = copy->main();
  CHECK(other.num_ids() == graph.num_ids());
  CHECK(other[gone].erased);
  CHECK(other.find(copy->strings.find("y")) == y);
  CHECK(&other.module() == copy.get());
  const NodeId mine = graph.clone_node(y, y, "y", IdMap<NodeId, NodeId>());
  const NodeId its = other.clone_node(y, y, "y", IdMap<NodeId, NodeId>());
  CHECK(mine == its);
  CHECK(graph.name_of(mine) == other.name_of(its));
  CHECK(graph[mine].uid == other[its].uid);
}

TEST_CASE("clone: editing one does not touch the other", "[clone]") {
  const std::unique_ptr<Module> module = parse(
      "fxg 0\ngraph @main {\n  %x: f32[4]@cpu = placeholder()\n  %y: f32[4]@cpu = aten.exp.default(%x)\n"
      "  %output = output(%y)\n}\n");
  const std::string before = all_forms(*module);
  const std::unique_ptr<Module> copy = module->clone();
  Graph& graph = copy->main();
  const NodeId y = graph.find(copy->strings.find("y"));
  graph.insert_node(y, NodeKind::kCallFunction, "new", copy->target("aten.neg.default"));
  graph.rename(y, copy->intern("renamed"));
  graph[y].tag = Tag::kMustSave;
  copy->fresh_storage({}, copy->intern("meta"));
  CHECK(all_forms(*module) == before);
  CHECK(all_forms(*copy) != before);
  CHECK_FALSE(module->strings.find("renamed").is_valid());
}

TEST_CASE("clone: the default pipeline makes the same bytes of a copy, and leaves the original", "[clone][property]") {
  const Pipeline pipeline = parse_pipeline(default_pipeline_text()).value();
  size_t changed = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const std::unique_ptr<Module> module = random_module(seed).module;
    const std::string before = printed(*module, Format::kPb);
    const std::unique_ptr<Module> copy = module->clone();
    if (printed(*copy, Format::kPb) != before) FAIL("a copy prints other bytes");
    if (!run_pipeline(*copy, pipeline, RunOptions()).ok()) continue;
    if (printed(*module, Format::kPb) != before) FAIL("the original has changed");
    REQUIRE(run_pipeline(*module, pipeline, RunOptions()).ok());
    const std::string after = printed(*module, Format::kPb);
    if (printed(*copy, Format::kPb) != after) FAIL("the pipeline makes something else of a copy");
    changed += after != before ? 1 : 0;
  }
  CHECK(changed >= 15);
}

}  // namespace
}  // namespace fxopt
