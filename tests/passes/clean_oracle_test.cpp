// Executes small random programs with views, in-place ops and several outputs on integers, before
// and after the clean-up passes. Results, final contents of the inputs, and the sharing of memory
// among outputs must not change.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/check/verify.h"
#include "ir/graph/module.h"
#include "ir/io/io.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/must.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

// A 2 x 2 tensor: its memory, and whether it is a transposed view.
struct Square {
  std::shared_ptr<std::vector<uint64_t>> memory;
  bool transposed = false;

  uint64_t& at(size_t i, size_t j) const { return (*memory)[transposed ? j * 2 + i : i * 2 + j]; }
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string run() {
    for (int i = 0; i < 3; ++i) add("placeholder()", false);
    const size_t count = 4 + pick(14);
    for (size_t i = 0; i < count; ++i) add_call();
    std::string outputs;
    const size_t returned = 1 + pick(4);
    for (size_t i = 0; i < returned; ++i) outputs += name(pick(transposed_.size())) + ", ";
    return text_ + "  return (" + outputs + ")\n}\n";
  }

 private:
  size_t pick(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  static std::string name(size_t index) { return "%v" + std::to_string(index); }

  void add(const std::string& call, bool transposed, const std::string& attributes = "") {
    const std::string type = transposed ? "f32[2, 2](1, 2)" : "f32[2, 2]";
    text_ += "  " + name(transposed_.size()) + ": " + type + " = " + call + attributes + "\n";
    transposed_.push_back(transposed);
  }

  void add_call() {
    // Early values are picked more often, so that equal expressions occur.
    const size_t a = std::min(pick(transposed_.size()), pick(transposed_.size()));
    const size_t b = std::min(pick(transposed_.size()), pick(transposed_.size()));
    const std::string phase = pick(4) == 0 ? " {phase=backward}" : " {phase=forward}";
    const std::string one = "(" + name(a) + ")", two = "(" + name(a) + ", " + name(b) + ")";
    const size_t kind = pick(10);
    if (kind < 2) return add("aten.neg.default" + one, transposed_[a], phase);
    if (kind == 2) return add("aten.add.Tensor" + two, transposed_[a], phase);
    if (kind == 3) return add("aten.clone.default" + one, transposed_[a], phase);
    if (kind < 6) return add("aten.t.default" + one, !transposed_[a], phase);
    if (kind == 6) return add("aten.alias.default" + one, transposed_[a], phase);
    if (kind == 7) return add("aten.permute.default(" + name(a) + ", [1, 0])", !transposed_[a], phase);
    if (kind == 8) return add("aten.neg_.default" + one, transposed_[a], phase);
    add("aten.copy_.default" + two, transposed_[a], phase);
  }

  std::mt19937_64 random_;
  std::string text_ = "graph @g {\n";
  std::vector<bool> transposed_;
};

using Values = std::map<uint32_t, Square>;

Square make(bool transposed, const auto& element) {
  Square made{std::make_shared<std::vector<uint64_t>>(4), transposed};
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) made.at(i, j) = element(i, j);
  }
  return made;
}

// A number that stands for an unknown function of its operands.
uint64_t mix(uint64_t a, uint64_t b) { return (a ^ (b * 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL + 1; }

Square call(const std::string& op, const Square& a, const Square& b) {
  if (op == "aten.neg.default") return make(a.transposed, [&](size_t i, size_t j) { return mix(a.at(i, j), 1); });
  if (op == "aten.add.Tensor")
    return make(a.transposed, [&](size_t i, size_t j) { return mix(a.at(i, j), b.at(i, j)); });
  if (op == "aten.clone.default") return make(a.transposed, [&](size_t i, size_t j) { return a.at(i, j); });
  if (op == "aten.t.default" || op == "aten.permute.default") return {a.memory, !a.transposed};
  if (op == "aten.alias.default") return a;
  REQUIRE((op == "aten.neg_.default" || op == "aten.copy_.default"));
  const Square result = op == "aten.neg_.default" ? make(false, [&](size_t i, size_t j) { return mix(a.at(i, j), 1); })
                                                  : make(false, [&](size_t i, size_t j) { return b.at(i, j); });
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) a.at(i, j) = result.at(i, j);
  }
  return a;
}

// Everything the caller can see.
std::vector<uint64_t> execute(const Graph& graph) {
  Values values;
  std::vector<Square> visible;
  for (const NodeId node : graph.nodes()) {
    std::vector<NodeId> inputs;
    graph.for_each_input(node, [&inputs](NodeId input) { inputs.push_back(input); });
    if (graph[node].kind == NodeKind::kPlaceholder) {
      const uint64_t base = 100 * (visible.size() + 1);
      values[node.index()] = make(false, [base](size_t i, size_t j) { return base + i * 2 + j; });
      visible.push_back(values[node.index()]);
    } else if (graph[node].kind == NodeKind::kOutput) {
      for (const NodeId input : inputs) visible.push_back(values.at(input.index()));
    } else {
      const Square& first = values.at(inputs.front().index());
      values[node.index()] = call(graph.op(node).name, first, values.at(inputs.back().index()));
    }
  }
  std::vector<uint64_t> seen;
  for (size_t k = 0; k < visible.size(); ++k) {
    for (size_t i = 0; i < 4; ++i) seen.push_back(visible[k].at(i / 2, i % 2));
    size_t first = 0;  // the first value in the same memory
    while (visible[first].memory != visible[k].memory) ++first;
    seen.push_back(first);
  }
  return seen;
}

TEST_CASE("clean-up passes keep what the caller sees", "[passes][property]") {
  const std::vector<std::string> pipelines = {"canonicalize", "cse", "cse{across-phases=true}", "dce",
                                              "canonicalize,cse,dce"};
  std::map<std::string, int64_t> counters;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const std::string text = Generator(seed).run();
    const std::unique_ptr<Module> original = parse(text);
    if (seed % 100 == 0) REQUIRE(verify(*original).empty());
    const std::vector<uint64_t> expected = execute(original->main());
    for (const std::string& passes : pipelines) {
      const std::unique_ptr<Module> module = parse(text);
      const Pipeline pipeline = parse_pipeline(passes).value();
      INFO("seed " << seed << ", " << passes << "\n" << text);
      const RunReport report = must(run_pipeline(*module, pipeline));
      INFO(print_text(*module));
      REQUIRE(execute(module->main()) == expected);
      for (const StepReport& step : report.steps) {
        for (const auto& [counter, amount] : step.result.counters()) counters[counter] += amount;
      }
      const RunReport again = run_pipeline(*module, pipeline).value();
      if (report.steps.size() > 1) continue;  // passes expose work to each other
      CHECK_FALSE(again.steps.front().result.changed());
    }
  }
  // The programs exercise every rule.
  for (const std::string counter : {"merged", "erased", "identities", "round-trips", "dead-views"}) {
    INFO(counter);
    CHECK(counters[counter] > 500);
  }
}

}  // namespace
}  // namespace fxopt
