// analyze_phases() from marks and dependencies. Inference has text cases in
// tests/cases/passes/infer-phase.

#include "ir/step/phases.h"

#include <memory>
#include <string>
#include <utility>

#include "ir/graph/module.h"
#include "ir/io/io.h"
#include "passes/clean/infer_phase.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

Phase phase_of(const Graph& graph, const PhaseMap& map, const char* name) {
  const NodeId node = graph.find(graph.module().strings.find(name));
  REQUIRE(node.is_valid());
  return map.phase[node];
}

const std::string kJoint =
    "graph @g {kind=joint} {\n"
    "  %x: f32[4] = placeholder()\n"
    "  %t: f32[4] = placeholder() {input={role=tangent}}\n"
    "  %b: f32[4] = aten.empty.memory_format([4])\n"
    "  %c: f32[4] = aten.copy_.default(%b, %t)\n"
    "  %d: f32[4] = aten.neg.default(%b)MARK\n"
    "  %e: f32[4] = aten.exp.default(%x) {phase=backward}\n"
    "  %s: (f32[2], f32[2]+2) = aten.split.Tensor(%e, 2)\n"
    "  %i: f32[2] = operator.getitem(%s, 0)\n"
    "  return (%x, %d, %i)\n"
    "}\n";

std::string with_mark(const std::string& mark) { return replaced(kJoint, "MARK", mark); }

TEST_CASE("a joint graph is backward where it depends on tangents, also through a storage", "[phases]") {
  const std::unique_ptr<Module> module = parse(with_mark(""));
  const Graph& graph = module->main();
  const PhaseMap map = analyze_phases(graph);
  CHECK(map.has_markers);
  CHECK(map.seeds.size() == 1);
  CHECK(map.conflicts.empty());
  CHECK(phase_of(graph, map, "x") == Phase::kForward);
  CHECK(phase_of(graph, map, "t") == Phase::kBackward);
  CHECK(phase_of(graph, map, "b") == Phase::kForward);
  CHECK(phase_of(graph, map, "c") == Phase::kBackward);
  CHECK(phase_of(graph, map, "d") == Phase::kBackward);
  CHECK(phase_of(graph, map, "e") == Phase::kBackward);  // a mark extends the closure
  CHECK(phase_of(graph, map, "s") == Phase::kForward);
}

TEST_CASE("a forward mark that depends on a tangent is a conflict and an error of infer-phase", "[phases]") {
  const std::unique_ptr<Module> module = parse(with_mark(" {phase=forward}"));
  const PhaseMap map = analyze_phases(module->main());
  REQUIRE(map.conflicts.size() == 1);
  CHECK(module->main().name_of(map.conflicts[0]) == "d");
  PassContext context(*module);
  const Error result = infer_phase(module->main(), {}, context).error();
  CHECK(result.code == ErrorCode::kPhaseConflict);
  CHECK(result.message == "'%d' is marked forward but depends on a tangent through memory");
  CHECK(result.where.node == "d");
}

TEST_CASE("a conflict names the tangent it depends on", "[phases]") {
  const std::unique_ptr<Module> module = parse(
      "graph @g {kind=joint} {\n  %t: f32[4] = placeholder() {input={role=tangent}}\n"
      "  %a: f32[4] = aten.neg.default(%t)\n  %b: f32[4] = aten.neg.default(%a) {phase=forward}\n  return (%b,)\n}\n");
  PassContext context(*module);
  CHECK(infer_phase(module->main(), {}, context).error().message ==
        "'%b' is marked forward but depends on tangent '%t'");
}

TEST_CASE("without marks the kind of graph decides, and a getitem follows what it takes from", "[phases]") {
  const std::string body =
      "  %x: f32[4] = placeholder()\n  %s: (f32[2], f32[2]+2) = aten.split.Tensor(%x, 2) {phase=loss}\n"
      "  %i: f32[2] = operator.getitem(%s, 0)\n  %n: f32[2] = aten.neg.default(%i)\n  return (%n,)\n}\n";
  for (const auto& [kind, phase] : {std::pair("backward", Phase::kBackward), std::pair("optimizer", Phase::kOptimizer),
                                    std::pair("forward", Phase::kForward)}) {
    INFO(kind);
    const std::unique_ptr<Module> module = parse("graph @g {kind=" + std::string(kind) + "} {\n" + body);
    const Graph& graph = module->main();
    const PhaseMap map = resolve_phases(graph);
    CHECK(phase_of(graph, map, "x") == phase);
    CHECK(phase_of(graph, map, "i") == Phase::kLoss);
    CHECK(phase_of(graph, map, "n") == phase);
  }
}

TEST_CASE("more candidates for seeds than one sweep follows", "[phases]") {
  std::string text = "graph @g {\n  %x: f32[4] = placeholder()\n";
  std::string sum, grads;
  for (int i = 0; i < 130; ++i) {
    const std::string n = std::to_string(i);
    text += "  %l" + n + ": f32[] = aten.sum.default(%x)\n  %o" + n + ": f32[] = aten.ones_like.default(%l" + n + ")\n";
    text += "  %e" + n + ": f32[4](0) = aten.expand.default(%o" + n + ", [4])\n";
    grads += ", %e" + n;
    sum += (i == 0 ? "%l" : ", %l") + n;
  }
  const std::unique_ptr<Module> module = parse(text + "  return (" + sum + grads + ")\n}\n");
  const PhaseMap map = infer_phases(module->main());
  CHECK(map.seeds.size() == 130);
  CHECK(phase_of(module->main(), map, "e129") == Phase::kBackward);
  CHECK(phase_of(module->main(), map, "l129") == Phase::kForward);
}

}  // namespace
}  // namespace fxopt
