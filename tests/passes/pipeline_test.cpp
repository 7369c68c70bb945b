// Pipeline text, option binding, order rules, and the checks of the runner.

#include "passes/pipeline/pipeline.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "ir/io/io.h"
#include "ir/memory/footprint.h"
#include "ir/step/compose.h"
#include "ir/step/step.h"
#include "passes/pipeline/entry.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

enum class Colour : uint8_t { kRed, kBlue };

struct PaintOptions {
  bool loud = false;
  int64_t coats = 2;
  std::string where = "wall";
  Colour colour = Colour::kRed;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("loud", self.loud, "Make noise.");
    field("coats", self.coats, "How many.");
    field("where", self.where, "Which part.");
    field("colour", self.colour, "Which colour.");
  }
};

}  // namespace

template <>
struct EnumNames<Colour> {
  static constexpr EnumName<Colour> kAll[] = {{Colour::kRed, "red"}, {Colour::kBlue, "blue"}};
};

namespace {

// Changes the graph as `colour` and `where` demand, and counts `coats` if `loud`.
Result<PassResult> paint(Graph& graph, const PaintOptions& options, PassContext&) {
  PassResult result;
  if (options.where == "nowhere") return Error{ErrorCode::kUnsupportedGraph, "nothing to paint", "", {}};
  if (options.colour == Colour::kBlue) graph[graph.first()].tag = Tag::kMustSave;
  if (options.where == "bare") {  // erases the tag and the mark of the second node
    Node& node = graph[graph.next(graph.first())];
    node.tag = Tag::kNone;
    node.meta = {};
  }
  if (options.where == "cycle") {
    const NodeId input = graph.first();
    graph.move_before(input, NodeId());
  }
  result.count("painted", options.loud ? options.coats : 0);
  return result;
}

PassInfo paint_row() { return entry<paint>("paint", Numerics::kExact, "Paint."); }

Pipeline one_step(const OptionTexts& options) {
  static const PassInfo kRow = paint_row();
  BoundPass bound = kRow.bind(options).value();
  Pipeline pipeline;
  pipeline.steps.push_back({&kRow, "paint", std::move(bound)});
  return pipeline;
}

std::unique_ptr<Module> small_module() {
  return parse("graph @g {\n  %x: f32[4] = placeholder()\n  %y: f32[4] = aten.neg.default(%x)\n  return (%y,)\n}\n");
}

Error pipeline_error(std::string_view text) {
  INFO(text);
  return parse_pipeline(text).error();
}

TEST_CASE("the registry is sorted and describes every option", "[passes][pipeline]") {
  const std::vector<PassInfo>& passes = pass_registry();
  REQUIRE(passes.size() >= 6);
  for (size_t i = 0; i < passes.size(); ++i) {
    INFO(passes[i].name);
    if (i > 0) CHECK(passes[i - 1].name < passes[i].name);
    CHECK(passes[i].summary.ends_with('.'));
    CHECK(find_pass(passes[i].name) == &passes[i]);
    for (const PassOptionInfo& option : passes[i].options) {
      CHECK(option.help.ends_with('.'));
      CHECK(passes[i].bind({{option.name, option.default_value}}).ok());
    }
    for (const PassRules::End& end : passes[i].rules.ends) CHECK_FALSE(end.why.empty());
  }
  CHECK(find_pass("no-such-pass") == nullptr);
}

TEST_CASE("options are described and bound by type", "[passes][pipeline]") {
  const PassInfo row = paint_row();
  REQUIRE(row.options.size() == 4);
  CHECK(row.options[0].type == "bool");
  CHECK(row.options[0].default_value == "false");
  CHECK(row.options[1].type == "int");
  CHECK(row.options[1].default_value == "2");
  CHECK(row.options[2].type == "string");
  CHECK(row.options[3].type == "enum");
  CHECK(row.options[3].choices == std::vector<std::string>{"red", "blue"});

  CHECK(row.bind({{"coats", "-9223372036854775808"}}).ok());
  for (const std::string value : {"", "2x", "+2", "02", "1e3", "9223372036854775808"}) {
    INFO(value);
    const Error error = row.bind({{"coats", value}}).error();
    CHECK(error.code == ErrorCode::kBadOptionValue);
    CHECK(error.where.field == "coats");
  }
  CHECK(row.bind({{"loud", "yes"}}).error().hint == "write true or false");
  CHECK(row.bind({{"colour", "blu"}}).error().hint == "did you mean 'blue'?");
  CHECK(row.bind({{"colour", "green-ish"}}).error().hint == "choices: red, blue");
  const Error unknown = row.bind({{"color", "red"}}).error();
  CHECK(unknown.code == ErrorCode::kUnknownOption);
  CHECK(unknown.hint == "did you mean 'colour'?");
}

enum class Fruit : uint8_t { kApple, kPear, kPlum };

}  // namespace

template <>
struct EnumNames<Fruit> {
  static constexpr EnumName<Fruit> kAll[] = {{Fruit::kApple, "apple"}, {Fruit::kPear, "pear"}, {Fruit::kPlum, "plum"}};
};

namespace {

struct BasketOptions {
  Bytes size{25 << 20};
  double share = 0.5;
  std::vector<std::string> names = {"a"};
  std::vector<Fruit> fruits = {Fruit::kPear};
  std::vector<NodePattern> calls;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("size", self.size, "How large.");
    field("share", self.share, "Which part of it.");
    field("names", self.names, "Whose.");
    field("fruits", self.fruits, "Which.");
    field("calls", self.calls, "Of what.");
  }
};

Result<PassResult> fill(Module&, const BasketOptions&, PassContext&) { return PassResult(); }

// The pipeline text of an option with this value, or the error's message and hint if the value is
// refused.
std::string bound_text(const std::string& option, const std::string& value) {
  const PassInfo row = entry<fill>("fill", Numerics::kExact, "Fill.");
  const Result<BoundPass> bound = row.bind({{option, value}});
  if (!bound.ok()) return bound.error().message + "; " + bound.error().hint;
  return step_text(row, bound->options);
}

TEST_CASE("options may be sizes, numbers, lists and patterns, each with one spelling", "[passes][pipeline]") {
  const PassInfo row = entry<fill>("fill", Numerics::kExact, "Fill.");
  std::string described;
  for (const PassOptionInfo& option : row.options) {
    described += option.name + ": " + option.type + " = " + option.default_value + "\n";
  }
  CHECK(described ==
        "size: bytes = 25MiB\nshare: float = 0.5\nnames: string list = a\nfruits: enum list = pear\n"
        "calls: pattern list = \n");
  CHECK(row.options[3].choices == std::vector<std::string>{"apple", "pear", "plum"});

  CHECK(bound_text("size", "1024MiB") == "fill{size=1GiB}");
  CHECK(bound_text("size", "1.5KiB") == "fill{size=1536B}");
  CHECK(bound_text("size", "26214400B") == "fill");
  CHECK(bound_text("share", "25e-2") == "fill{share=0.25}");
  CHECK(bound_text("share", ".5") == "fill");
  CHECK(bound_text("names", " b , a,") == "fill{names=\"b,a\"}");
  CHECK(bound_text("names", "") == "fill{names=\"\"}");
  CHECK(bound_text("fruits", "plum,apple,plum") == "fill{fruits=\"apple,plum\"}");
  CHECK(bound_text("calls", "layers.*::aten.mm.default,aten.add.*, *::aten.mul.Tensor") ==
        "fill{calls=\"layers.*::aten.mm.default,aten.add.*,aten.mul.Tensor\"}");

  const auto refused = [](const std::string& option, const std::string& value) {
    return "'" + value + "' is not a value of option '" + option + "' of 'fill'; ";
  };
  const std::string size_hint = "write a size with a unit, as in 25MiB, 1.5GiB or 1000B";
  CHECK(bound_text("size", "-1") == refused("size", "-1") + size_hint);
  CHECK(bound_text("size", "25 apples") == refused("size", "25 apples") + size_hint);
  CHECK(bound_text("share", "nan") == refused("share", "nan") + "write a number, as in 0.5 or 1e-3");
  CHECK(bound_text("share", "half") == refused("share", "half") + "write a number, as in 0.5 or 1e-3");
  CHECK(bound_text("fruits", "plum,pera") == refused("fruits", "pera") + "did you mean 'pear'?");
  CHECK(bound_text("calls", "aten.mm.default,layers::") ==
        refused("calls", "layers::") + "write an op or module::op, where '*' matches any text");
}

TEST_CASE("pipeline text prints canonically and parses back", "[passes][pipeline]") {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"", ""},
      {"  ", ""},
      {"cse", "cse"},
      {" cse , dce{ } ", "cse,dce"},
      {"dce{random=remove,collectives=keep}", "dce{random=remove}"},
      {"dce{compat=\"torch\",\n collectives = remove}", "dce{collectives=remove,compat=torch}"},
      {"infer-phase,cse{across-phases=false},remat{compat=torch}", "infer-phase,cse,remat{compat=torch}"},
  };
  for (const auto& [text, canonical] : texts) {
    INFO(text);
    CHECK(parse_pipeline(text)->text() == canonical);
    CHECK(parse_pipeline(canonical)->text() == canonical);
  }
  REQUIRE(parse_pipeline(default_pipeline_text()).ok());
  CHECK(parse_pipeline(default_pipeline_text())->text() == default_pipeline_text());
}

TEST_CASE("pipeline errors point at the place", "[passes][pipeline]") {
  struct Bad {
    std::string text;
    ErrorCode code;
    uint64_t column;
    std::string message;
  };
  const std::vector<Bad> bad = {
      {",cse", ErrorCode::kBadPipeline, 1, "expected the name of a pass"},
      {"cse,", ErrorCode::kBadPipeline, 5, "expected a pass after ','"},
      {"cse dce", ErrorCode::kBadPipeline, 5, "expected ',' between passes"},
      {"cse}", ErrorCode::kBadPipeline, 4, "expected ',' between passes"},
      {"cse{", ErrorCode::kBadPipeline, 4, "'{' is never closed"},
      {"dce{random}", ErrorCode::kBadPipeline, 11, "expected '=' after option 'random'"},
      {"dce{random=}", ErrorCode::kBadPipeline, 12, "expected a value after '='"},
      {"dce{random=\"remove}", ErrorCode::kBadPipeline, 12, "quoted value is never closed"},
      {"dce{random=keep,}", ErrorCode::kBadPipeline, 17, "expected an option after ','"},
      {"dce{random=keep;}", ErrorCode::kBadOptionValue, 12, "'keep;' is not a value of option 'random' of 'dce'"},
      {"dce{random=keep random=keep}", ErrorCode::kBadPipeline, 17, "expected ',' or '}' after an option"},
      {"dce{random=keep,random=keep}", ErrorCode::kBadPipeline, 17, "option 'random' is given twice"},
      {"cse,dec", ErrorCode::kUnknownPass, 5, "there is no pass 'dec'"},
      {"dce{randon=keep}", ErrorCode::kUnknownOption, 5, "'dce' has no option 'randon'"},
      {"dce,sac{policy=full,recompute-every=-1}", ErrorCode::kBadOptionValue, 37,
       "'recompute-every' of 'sac' must be 0 or more"},
      {"canonicalize{rules=\"aliases,detach\"}", ErrorCode::kBadOptionValue, 20,
       "'detach' is not a value of option 'rules' of 'canonicalize'"},
      {"bucket{all-gather=-1}", ErrorCode::kBadOptionValue, 19,
       "'-1' is not a value of option 'all-gather' of 'bucket'"},
      {"bucket{all-gather=nan}", ErrorCode::kBadOptionValue, 19,
       "'nan' is not a value of option 'all-gather' of 'bucket'"},
      {"bucket{max-growth=nan}", ErrorCode::kBadOptionValue, 19,
       "'nan' is not a value of option 'max-growth' of 'bucket'"},
      {"compute-cap{max-consecutive=-1}", ErrorCode::kBadOptionValue, 29,
       "'max-consecutive' of 'compute-cap' must be 0 or more"},
      {"cse{collectives=1}", ErrorCode::kBadOptionValue, 17, "'1' is not a value of option 'collectives' of 'cse'"},
  };
  for (const Bad& expected : bad) {
    const Error error = pipeline_error(expected.text);
    CHECK(code_name(error.code) == code_name(expected.code));
    CHECK(error.where.column == expected.column);
    CHECK(error.message == expected.message);
    CHECK(error.where.excerpt == expected.text + "\n" + std::string(expected.column - 1, ' ') + "^");
  }
  CHECK(pipeline_error("cse,dec").hint == "did you mean 'dce'?");
  CHECK(pipeline_error("zzzzzzzz").hint == "'fxopt passes' lists the passes");
  CHECK(pipeline_error("infer-phase{x=1}").hint == "it takes no options");
  CHECK(pipeline_error("sac{exclude=a,b}").hint == "put a value that contains ',' in double quotes");
  CHECK(parse_pipeline("sac{exclude=\"a,b\"}")->text() == "sac{exclude=\"a,b\"}");
}

TEST_CASE("a pass must not stand behind what it must precede", "[passes][pipeline]") {
  const Error error = pipeline_error("cse,remat,infer-phase");
  CHECK(error.code == ErrorCode::kPassOrder);
  CHECK(error.where.column == 11);
  CHECK(error.message ==
        "'infer-phase' must not come after 'remat': the later pass writes phases, but remat relies on phases and "
        "writes some");
  CHECK(error.hint == "put 'infer-phase' before 'remat'");
  CHECK(pipeline_error("remat,sac").code == ErrorCode::kPassOrder);
  CHECK(pipeline_error("sac,infer-phase").code == ErrorCode::kPassOrder);
  CHECK(parse_pipeline("sac,remat,cse").ok());
  CHECK(parse_pipeline("infer-phase,remat").ok());
  CHECK(parse_pipeline("infer-phase,remat,infer-phase").ok());
}

TEST_CASE("a pass that lies about a change is found out", "[passes][pipeline]") {
  const std::unique_ptr<Module> module = small_module();
  CHECK(run_pipeline(*module, one_step({})).ok());
  CHECK_THROWS_AS(run_pipeline(*module, one_step({{"loud", "true"}})), InternalError);
  CHECK_THROWS_AS(run_pipeline(*module, one_step({{"colour", "blue"}})), InternalError);
  const std::unique_ptr<Module> fresh = small_module();
  const RunReport honest = run_pipeline(*fresh, one_step({{"loud", "true"}, {"colour", "blue"}})).value();
  CHECK(honest.steps[0].result.counters().at("painted") == 2);
  CHECK(honest.steps[0].nodes_before == 3);
  RunOptions unchecked;
  unchecked.check_hash = false;
  CHECK(run_pipeline(*fresh, one_step({{"loud", "true"}}), unchecked).ok());
}

TEST_CASE("a pass that loses a tag or a mark is found out", "[passes][pipeline]") {
  const auto module_of = [](const std::string& attributes) {
    return parse("graph @g {\n  %x: f32[4] = placeholder()\n  %y: f32[4] = aten.neg.default(%x) {" + attributes +
                 "}\n  return (%y,)\n}\n");
  };
  const Pipeline wiping = one_step({{"loud", "true"}, {"where", "bare"}});
  CHECK_THROWS_WITH(run_pipeline(*module_of("tag=MUST_RECOMPUTE"), wiping), Catch::Contains("lost a decision"));
  CHECK_THROWS_WITH(run_pipeline(*module_of(R"(meta={"custom": {"ap_must_save": True}})"), wiping),
                    Catch::Contains("lost a decision"));
  CHECK(run_pipeline(*module_of(R"(meta={"custom": {"mine": True}})"), wiping).ok());
}

TEST_CASE("a broken output and a failed pass are errors that name the pass", "[passes][pipeline]") {
  const OptionTexts breaking = {{"loud", "true"}, {"where", "cycle"}};
  const Error broken = run_pipeline(*small_module(), one_step(breaking)).error();
  CHECK(error_info(broken.code).exit == ExitCode::kNotEquivalent);
  CHECK(broken.message.starts_with("after pass 1 (paint): "));
  RunOptions unverified;
  unverified.verify = false;
  unverified.prove = false;
  CHECK(run_pipeline(*small_module(), one_step(breaking), unverified).ok());

  const Error failed = run_pipeline(*small_module(), one_step({{"where", "nowhere"}})).error();
  CHECK(failed.message == "paint: nothing to paint");
  CHECK(failed.where.graph == "g");
}

TEST_CASE("subgraphs are not run on, steps are observed and may be cut short", "[passes][pipeline]") {
  const std::string text =
      "graph @g {\n  attribute {path=\"body\", graph=\"sub\"}\n  %x: f32[4] = placeholder()\n"
      "  %dead: f32[4] = aten.neg.default(%x)\n  return (%x,)\n}\n"
      "graph @sub {\n  %x: f32[4] = placeholder()\n  %dead: f32[4] = aten.neg.default(%x)\n  return (%x,)\n}\n"
      "graph @other {\n  %x: f32[4] = placeholder()\n  %dead: f32[4] = aten.neg.default(%x)\n  return (%x,)\n}\n";
  std::unique_ptr<Module> module = parse_text(text, "t").value();
  std::vector<std::string> seen;
  RunOptions options;
  options.stop_after = 2;
  options.observer = [&seen](size_t index, const PipelineStep& step, const StepReport& report, const Module&) {
    seen.push_back(std::to_string(index) + " " + step.text + " " + std::to_string(report.nodes_after));
  };
  const RunReport report = run_pipeline(*module, *parse_pipeline("cse,dce,raise-getitems"), options).value();
  CHECK(report.steps.size() == 2);
  CHECK(report.steps[1].result.counters().at("erased") == 2);
  CHECK(seen == std::vector<std::string>{"0 cse 9", "1 dce 7"});
}

// Splits the main graph before the node `first_of_second`. The first graph hands on every value
// that the second one uses.
struct SplitOptions {
  std::string first_of_second = "second";

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("first-of-second", self.first_of_second, "Node with which the second graph begins.");
  }
};

void add_output(Graph& graph, const std::vector<NodeId>& values) {
  std::vector<Arg> items;
  for (const NodeId value : values) items.push_back(Arg::node(value));
  const ArgRange tuple = graph.pool().append(items);
  const NodeId output = graph.insert_node(NodeId(), NodeKind::kOutput, "output", TargetId());
  graph.set_args(output, graph.pool().append(std::vector{Arg::children(ArgKind::kTuple, tuple)}), ArgRange());
}

Result<PassResult> split(Module& module, const SplitOptions& options, PassContext& context) {
  const Graph& whole = module.main();
  CHECK(context.facts.of(whole).storages().num_buffers() > 0);
  Graph& first = module.add_graph(module.intern("first"));
  Graph& second = module.add_graph(module.intern("second"));
  const NodeId border = whole.find(module.intern(options.first_of_second));
  if (!border.is_valid()) return Error{ErrorCode::kUnsupportedGraph, "there is no such node", "", {}};
  IdMap<NodeId, NodeId> in_first, in_second;
  std::vector<NodeId> handed_on, returned;
  for (const NodeId node : whole.nodes()) {
    const bool is_second = whole.position(node) >= whole.position(border);
    Graph& graph = is_second ? second : first;
    IdMap<NodeId, NodeId>& mapped = is_second ? in_second : in_first;
    whole.for_each_input(node, [&](NodeId input) {
      if (!is_second || in_second.get(input).is_valid()) return;
      handed_on.push_back(in_first.get(input));
      in_second[input] = second.insert_node(second.first(), NodeKind::kPlaceholder, whole.name_of(input), TargetId());
      second.copy_fields(whole, input, in_second.get(input));
      InputSpec& spec = second.mutable_extra(in_second.get(input)).input.emplace();
      spec.role = InputRole::kSavedValue;
      spec.saved_from_output = static_cast<int64_t>(handed_on.size()) - 1;
    });
    if (whole[node].kind == NodeKind::kOutput) {
      whole.for_each_input(node, [&](NodeId input) { returned.push_back(in_second.get(input)); });
      break;
    }
    const NodeId copy = graph.insert_node(NodeId(), whole[node].kind, whole.name_of(node), whole[node].target);
    const ArgRange args = graph.copy_args(whole, whole[node].args, mapped);
    graph.copy_fields(whole, node, copy);
    graph.set_args(copy, args, graph.copy_args(whole, whole[node].kwargs, mapped));
    mapped[node] = copy;
  }
  add_output(first, handed_on);
  add_output(second, returned);
  first.kind = GraphKind::kForward;
  second.kind = GraphKind::kBackward;
  module.replace_graph(whole.id(), {first.id(), second.id()});
  PassResult result;
  result.count("graphs", 2);
  return result;
}

TEST_CASE("a pass on the module splits a graph, and the passes after it run on what it made", "[passes][pipeline]") {
  const std::unique_ptr<Module> module = parse(
      "graph @g {\n  %x: f32[4] = placeholder()\n  %y: f32[4] = placeholder()\n  %a: f32[4] = aten.exp.default(%x)\n"
      "  %b: f32[4] = aten.exp.default(%x)\n  %c: f32[4] = aten.add.Tensor(%a, %y)\n"
      "  %second: f32[4] = aten.add.Tensor(%c, %b)\n  return (%second,)\n}\n");
  const PassInfo row = entry<split>("split", Numerics::kExact, "Split.");
  Pipeline pipeline = parse_pipeline("cse,dce").value();
  pipeline.steps.insert(pipeline.steps.begin(), {&row, "split", row.bind({}).value()});
  pipeline.steps.insert(pipeline.steps.begin() + 2, pipeline.steps[2]);  // dce runs twice
  PassContext context(*module);
  const RunReport report = run_pipeline(*module, pipeline, RunOptions(), context).value();
  CHECK(report.steps[0].result.counters().at("graphs") == 2);
  CHECK(report.steps[0].unproved.empty());
  CHECK(report.steps[1].result.counters().at("merged") == 1);
  REQUIRE(module->num_graphs() == 2);
  CHECK(module->text(module->main().name()) == "first");
  CHECK(module->main().num_nodes() == 5);
  CHECK(context.facts.of(module->main()).storages().num_buffers() > 0);

  // Both graphs as one step. The second run takes the outputs of the first. At its sum, %x, %y, %a,
  // %c and the sum are live.
  const Step step = find_step(*module).value();
  CHECK(step.count(1, StepInput::Source::kOutput) == step.runs[1].inputs.size());
  const Footprint footprint = measure(module->graph(compose_step(*module, step)), {});
  CHECK(footprint.memory.peak_bytes() == 5 * 16);

  pipeline.steps = {{&row, "split", row.bind({{"first-of-second", "none"}}).value()}};
  const std::unique_ptr<Module> again = small_module();
  CHECK(run_pipeline(*again, pipeline).error().message == "split: there is no such node");
}

TEST_CASE("the structural hash sees every part a pass may change", "[passes][pipeline]") {
  const std::unique_ptr<Module> module = small_module();
  Graph& graph = module->main();
  const NodeId node = graph.next(graph.first());
  StructuralHash last = structural_hash(*module);
  CHECK(structural_hash(*module) == last);
  graph.mutable_extra(node);  // adding empty rare fields is no change
  CHECK(structural_hash(*module) == last);
  const auto changed = [&](const char* what) {
    INFO(what);
    const StructuralHash now = structural_hash(*module);
    CHECK(now != last);
    last = now;
  };
  graph.rename(node, module->intern("renamed"));
  changed("name");
  graph[node].phase = Phase::kBackward;
  changed("phase");
  graph[node].phase_markers = 4;
  changed("markers");
  graph.mutable_extra(node).verdict = TagVerdict{Verdict::kMoot, TagRule::kNone, StringId(), ""};
  changed("verdict");
  graph.mutable_extra(node).control.push_back({graph.first(), ControlKind::kKeepAlive});
  changed("control");
  graph.mutable_extra(node).origins.push_back(Origin{graph.name(), 7, OriginKind::kMerged, StringId(), ""});
  changed("origins");
  graph.mutable_extra(node).stream = module->intern("s");
  changed("stream");
  graph.pool().tensor(graph.pool().value(graph[node].value)).requires_grad = true;
  changed("value");
  graph.outputs.push_back(OutputSpec());
  changed("outputs");
  module->erased.push_back(ErasedNode());
  changed("ledger");
}

}  // namespace
}  // namespace fxopt
