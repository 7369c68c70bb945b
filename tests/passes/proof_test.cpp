// Passes as a newcomer might write them. One is wrong. The other replaces expressions by equal
// ones, which only a rewrite rule proves.

#include <memory>
#include <string>

#include "core/check.h"
#include "passes/pass/replacer.h"
#include "passes/pipeline/entry.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

struct NoOptions {
  template <class Self, class Field>
  static void visit(Self&, Field&&) {}
};

// Replaces the second of two equal negations by the first, but does not check whether the operand
// is written in between.
Result<PassResult> merge_negations(Graph& graph, const NoOptions&, PassContext& context) {
  PassResult result;
  Replacer replacer(graph, context.facts.of(graph).phases(), "merge-negations");
  IdMap<NodeId, NodeId> known;
  NodeId node = graph.first();
  while (node.is_valid()) {
    const NodeId here = node;
    node = graph.next(node);
    if (!graph[here].is_call() || graph.op(here).name != "aten.neg.default") continue;
    const NodeId input = graph.arg(here, 0)->as_node();
    if (!known.get(input).is_valid()) {
      known[input] = here;
      continue;
    }
    replacer.merge(here, known.get(input));
    result.count("merged");
  }
  replacer.finish();
  return result;
}

TEST_CASE("a newcomer's pass that moves a read over a write is stopped, and the text says where",
          "[passes][pipeline]") {
  const PassInfo row = entry<merge_negations>("merge-negations", Numerics::kExact, "Merge negations.");
  const auto run = [&](const std::string& write) {
    const std::unique_ptr<Module> module =
        parse("graph @g {\n  %x: f32[4] = placeholder()\n  %a: f32[4] = aten.neg.default(%x)\n" + write +
              "  %b: f32[4] = aten.neg.default(%x)\n"
              "  %s: f32[4] = aten.mul.Tensor(%a, %b) {module_path=\"layers.0\", source={file=\"model.py\", line=12}}\n"
              "  return (%s,)\n}\n");
    Pipeline pipeline = parse_pipeline("dce").value();
    pipeline.steps.insert(pipeline.steps.begin(), {&row, "merge-negations", *row.bind({})});
    const Result<RunReport> report = run_pipeline(*module, pipeline);
    return report.ok() ? std::string("proved") : format_error(report.error());
  };
  CHECK(run("") == "proved");
  CHECK(run("  %w: f32[4] = aten.add_.Tensor(%x, 1)\n") ==
        "error[FX0420]: after pass 1 (merge-negations): results differ: output 0 (%s)\n"
        "  graph: @g\n  node: %s\n  module: layers.0\n  source: model.py:12\n"
        "  %s: f32[4] = aten.mul.Tensor(%a, %a)\n"
        "  hint: this call is the first that the earlier graph does not compute. The earlier graph's node with "
        "this uid is the same call, but reads other data. Its operands were computed or written differently, or its "
        "order with another write, draw or effect changed");
}

struct ReadPartsOptions {
  bool claims = true;
  bool takes_first = false;  // ignores the rows of the slice

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("claims", self.claims, "Say why it is right.");
    field("takes-first", self.takes_first, "Be wrong.");
  }
};

// Replaces rows [start, end) of a concatenation by the tensor at that place. Every tensor has as
// many rows as the slice.
Result<PassResult> read_parts(Graph& graph, const ReadPartsOptions& options, PassContext& context) {
  PassResult result;
  Replacer replacer(graph, context.facts.of(graph).phases(), "read-parts");
  NodeId node = graph.first();
  while (node.is_valid()) {
    const NodeId slice = node;
    node = graph.next(node);
    if (graph.op(slice).name != "aten.slice.Tensor" || !graph[slice].is_call()) continue;
    const NodeId from = graph.arg(slice, 0)->as_node();
    if (!graph[from].is_call() || graph.op(from).name != "aten.cat.default") continue;
    const int64_t start = graph.arg(slice, 2)->as_int();
    const int64_t rows = graph.arg(slice, 3)->as_int() - start;
    const std::span<const Arg> parts = graph.pool().children(*graph.arg(from, 0));
    const size_t place = options.takes_first ? 0 : static_cast<size_t>(start / rows);
    if (options.claims) result.claim(graph, slice, RewriteRule::kPart);
    replacer.replace(slice, parts[place].as_node());
    result.count("parts");
  }
  replacer.finish();
  return result;
}

const char* const kRows =
    "graph @g {kind=inference} {\n"
    "  %x: f32[4, 4] = placeholder()\n  %y: f32[4, 4] = placeholder()\n"
    "  %b: f32[8, 4] = aten.cat.default([%x, %y])\n"
    "  %h: f32[4, 4](4, 1)+16 = aten.slice.Tensor(%b, 0, 4, 8)\n"
    "  %r: f32[4, 4] = aten.neg.default(%h)\n  return (%r,)\n}\n";

// Runs the pass and then dce, and returns "proved" or the error.
std::string run(const std::string& text, const OptionTexts& given) {
  const PassInfo row = entry<read_parts>("read-parts", Numerics::kExact, "Read parts.",
                                         PassRules{{}, {}, {{ProofTerm::kClaims, "", ""}}});
  const std::unique_ptr<Module> module = parse(text);
  Pipeline pipeline = parse_pipeline("infer-phase,dce").value();
  pipeline.steps.insert(pipeline.steps.begin() + 1, {&row, "read-parts", row.bind(given).value()});
  const Result<RunReport> report = run_pipeline(*module, pipeline);
  if (!report.ok()) return report.error().message;
  for (const StepReport& step : report->steps) {
    if (!step.unproved.empty()) return step.unproved;
  }
  return module->main().find(module->intern("b")).is_valid() ? "something is left" : "proved";
}

TEST_CASE("claims: a law proves what the pass says, and later passes are proved from there", "[passes][pipeline]") {
  CHECK(run(kRows, {}) == "proved");
  CHECK(run(kRows, {{"claims", "false"}}) == "after pass 2 (read-parts): results differ: output 0 (%r)");
  CHECK(run(kRows, {{"takes-first", "true"}}) == "after pass 2 (read-parts): results differ: output 0 (%r)");
}

TEST_CASE("claims: what a law does not bear out is said", "[passes][pipeline]") {
  std::string text = replaced(kRows, "4, 8)", "3, 6)");
  text = replaced(text, "[4, 4](4, 1)+16", "[3, 4](4, 1)+12");
  text = replaced(text, "%r: f32[4, 4]", "%r: f32[3, 4]");
  CHECK(run(text, {}) ==
        "after pass 2 (read-parts): results differ: output 0 (%r); rewrite rules that could not be "
        "confirmed: part at %h of the input graph: no tensor was copied to exactly the bytes of the value");
}

TEST_CASE("claims: a pass whose row does not say so may make none", "[passes][pipeline]") {
  const PassInfo row = entry<read_parts>("read-parts", Numerics::kExact, "Read parts.");
  const std::unique_ptr<Module> module = parse(kRows);
  Pipeline pipeline = parse_pipeline("dce").value();
  pipeline.steps = {{&row, "read-parts", *row.bind({})}};
  CHECK_THROWS_AS(run_pipeline(*module, pipeline), InternalError);
}

}  // namespace
}  // namespace fxopt
