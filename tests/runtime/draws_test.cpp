// Draws keep their slots, whatever passes and partitions do to the nodes that draw.

#include "runtime/plan/draws.h"

#include <map>
#include <set>

#include "ir/io/io.h"
#include "ir/step/compose.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/print.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

// The draws of each slot: place in the model, and elements. Two calls of one slot draw the same.
using Draws = std::map<std::pair<uint32_t, uint64_t>, std::set<std::string>>;

Draws draws_of(const FxPlan& plan) {
  Draws draws;
  for (uint64_t i = 0; i < plan.num_steps; ++i) {
    const FxStep& step = plan.steps[i];
    if (step.draw == FX_NONE) continue;
    const FxDraw& draw = plan.draws[step.draw];
    const FxNode& node = plan.nodes[step.node];
    const std::string result = tensor_text(plan, index_of(plan.words[step.results]));
    draws[{draw.invocation, draw.uid}].insert(std::string(text_at(plan, node.module)) + " " +
                                              std::string(text_at(plan, node.file)) + ":" + std::to_string(node.line) +
                                              " " + result.substr(0, result.find(" on ")));
  }
  return draws;
}

Draws planned_draws(std::unique_ptr<Module> module) { return draws_of(must(lower_step(*module))->view()); }

TEST_CASE("draws: every exact pipeline and cut of GPT-2 draws the same numbers in the same places") {
  for (const std::string file : {"gpt2_joint_twin.pb.zst", "gpt2_flb_twin.pb.zst"}) {
    const Draws before = planned_draws(load_optimized(file, ""));
    REQUIRE(before.size() == 7);
    for (const std::string passes :
         {"canonicalize,cse,dce", "sac{policy=full},remat,dce", "canonicalize,cse,sac,remat,dce",
          "canonicalize,cse,sac{policy=full},remat,compute-cap{max-live=1MiB},dce", "partition{mode=default}",
          "sac{policy=full},partition", "canonicalize,cse,partition{mode=min-cut}", "partition,canonicalize,cse,dce"}) {
      CAPTURE(file, passes);
      const bool is_cut = passes.find("partition") != std::string::npos;
      if (is_cut && file == "gpt2_flb_twin.pb.zst") continue;  // no joint graph
      CHECK(planned_draws(load_optimized(file, passes)) == before);
    }
  }
}

constexpr std::string_view kRepeatedDraw = R"(fxg 0
rng_slot {name="cuda", device="cuda:0"}
graph @main {
  %x: f32[4] = placeholder()
  %drop: (f32[4], b8[4]) = aten.native_dropout.default(%x, 0.1, True) {tag=MUST_RECOMPUTE, rng={slot="cuda", seed=7, offset=4, increment=4}}
  %y: f32[4] = operator.getitem(%drop, 0) {tag=MUST_RECOMPUTE}
  %loss: f32[] = aten.sum.default(%y)
  %g: f32[4] = aten.mul.Tensor(%y, %x) {phase=backward}
  return (%loss, %g)
}
)";

TEST_CASE("draws: a copy has its original's slot, which counting draws would not give it") {
  const auto repeated = [](bool by_order) {
    std::unique_ptr<Module> module = parse_module(std::string(kRepeatedDraw), Format::kText, "text").value();
    optimize(*module, "remat");
    const Step step = find_step(*module).value();
    const Graph& graph = module->graph(compose_step(*module, step));
    uint64_t next = 0;
    const DrawKeys ordered = [&](const Graph&, NodeId) { return DrawKey{0, next++}; };
    return lower(graph, by_order ? ordered : draw_keys(*module, step, graph)).value();
  };
  const std::unique_ptr<Plan> plan = repeated(false), planted = repeated(true);
  CHECK(plan->draws.size() == 2);
  CHECK(draws_of(plan->view()).size() == 1);
  CHECK(plan->text(plan->draws[1].slot) == "cuda");
  CHECK(plan->draws[1].seed == 7);
  CHECK(plan->draws[1].offset == 4);
  CHECK(draws_of(planted->view()).size() == 2);
}

TEST_CASE("draws: each microbatch draws its own numbers") {
  std::unique_ptr<Module> module = load_optimized("gpt2_joint_twin.pb.zst", "partition{mode=default}");
  const Step once = find_step(*module).value();
  REQUIRE(once.runs.size() == 2);
  CHECK(invocations_of(*module, once) == std::vector<uint32_t>{0, 0});
  Step twice = once;
  twice.runs.insert(twice.runs.end(), once.runs.begin(), once.runs.end());
  CHECK(invocations_of(*module, twice) == std::vector<uint32_t>{0, 0, 1, 1});
}

}  // namespace
}  // namespace fxopt
