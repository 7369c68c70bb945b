// The reducer without its command: judges run in this process.

#include "passes/reduce/reduce.h"

#include <algorithm>
#include <set>

#include "core/hash.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "ir/values/values.h"
#include "passes/reduce/details.h"
#include "passes/reduce/edits.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/property/random_module.h"

namespace fxopt {
namespace {

// True if the first argument of a call of `reader` is a call of `read`.
bool reads(const Module& module, std::string_view reader, std::string_view read) {
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      const Arg* first = graph.arg(node, 0);
      if (graph.op(node).name != reader || first == nullptr || !first->is(ArgKind::kNode)) continue;
      if (graph.op(first->as_node()).name == read) return true;
    }
  }
  return false;
}

struct Reduced {
  ReduceCase smallest;
  ReduceReport report;
  std::vector<uint64_t> judged;  // hashes of the cases, in order
};

// Runs the reducer, and checks every judged case against the promises of its header.
Reduced reduce(ReduceCase from, const std::function<bool(const Module&, const ReduceCase&)>& is_interesting) {
  Reduced result;
  std::set<std::pair<std::string, std::string>> seen;
  const Judge judge = [&](const ReduceCase& candidate) {
    CHECK(seen.insert({candidate.graph, candidate.passes.value_or("")}).second);
    result.judged.push_back(hash_combine(hash_bytes(candidate.graph), hash_bytes(candidate.passes.value_or(""))));
    const std::unique_ptr<Module> module = parse(candidate.graph);
    CHECK(verify(*module).empty());
    CHECK(print_text(*module) == candidate.graph);
    return is_interesting(*module, candidate) ? Interest::kInteresting : Interest::kUninteresting;
  };
  result.report = reduce_case(from, judge).value();
  result.smallest = std::move(from);
  const std::unique_ptr<Module> module = parse(result.smallest.graph);
  CHECK(verify(*module).empty());
  CHECK(is_interesting(*module, result.smallest));
  CHECK(result.report.nodes == module->num_nodes());
  CHECK(result.report.judged == result.judged.size());
  return result;
}

// Random modules contain details that the verifier rejects. Drops one kind after another until
// nothing is broken.
void make_valid(Module& module) {
  for (const ModuleDetail& detail : module_details()) {
    if (!verify(module, 1).empty()) detail.drop(module);
  }
  for (const NodeDetail& detail : node_details()) {
    if (verify(module, 1).empty()) return;
    for (const GraphId id : module.graphs()) {
      Graph& graph = module.graph(id);
      for (const NodeId node : graph.nodes()) detail.drop(graph, node);
    }
  }
}

// A valid random module of at least `min_nodes` nodes, with an inserted aten.relu of an aten.mm.
std::string random_case(uint64_t& seed, size_t min_nodes) {
  RandomModuleOptions options;
  options.max_nodes = 400;
  options.fill_records = false;
  for (;; ++seed) {
    const std::unique_ptr<Module> module = random_module(seed, options).module;
    if (module->num_nodes() < min_nodes) continue;
    make_valid(*module);
    Graph& graph = module->main();
    NodeId middle = graph.first();
    for (size_t i = 0; i < graph.num_nodes() * 2 / 3; ++i) middle = graph.next(middle);
    const NodeId last = graph.prev(middle);
    const auto call = [&](std::string_view target, std::vector<Arg> args) {
      const NodeId node = graph.insert_node(middle, NodeKind::kCallFunction, "planted", module->target(target));
      graph.set_args(node, graph.pool().append(args), ArgRange());
      graph[node].value = graph[graph.first()].value;
      return node;
    };
    const NodeId mm = call("aten.mm.default", {Arg::node(last), Arg::node(last)});
    const NodeId relu = call("aten.relu.default", {Arg::node(mm)});
    for (NodeId node = middle; node != graph.output(); node = graph.next(node)) {
      const std::vector<UseId> edges = graph.edges(node);
      if (edges.empty()) continue;
      graph.set_use(edges.front(), relu);  // gives relu many dependents
      break;
    }
    if (verify(*module).empty()) return print_text(*module);
  }
}

TEST_CASE("reduce: a relu of an mm in random modules comes down to both, an input and the output", "[property]") {
  uint64_t seed = 0;
  size_t most = 0;
  for (int i = 0; i < 4; ++i, ++seed) {
    const std::string text = random_case(seed, 300);
    CAPTURE(seed);
    const auto judge = [](const Module& module, const ReduceCase&) {
      return reads(module, "aten.relu.default", "aten.mm.default");
    };
    const Reduced reduced = reduce({text, std::nullopt}, judge);
    CHECK(reduced.report.is_complete);
    CHECK(reduced.report.nodes <= 4);
    most = std::max(most, reduced.report.judged);
    if (i > 0) continue;
    // The second reduction judges the same cases in the same order.
    CHECK(reduce({text, std::nullopt}, judge).judged == reduced.judged);
  }
  CHECK(most <= 400);
}

TEST_CASE("reduce leaves nothing that can go") {
  const Reduced reduced = reduce({R"(fxg 0
module {name="m"}
symbol {name="s0", kind=backed, min=2, graph="g", node="x"}
storage {id=3, bytes=16}
storage {id=4, bytes=16}
process_group {uid="0", ranks=[0, 1]}
graph @g {kind=joint, num_forward_outputs=1} {
  output_spec {role=user}
  output_spec {role=gradient, alias_of_input=1}
  %x: f32[4]$3 = placeholder() {input={role=parameter}}
  %y: f32[4]$4 = placeholder() {input={role=input, alias_of_input=0}}
  %a: f32[4] = aten.neg.default(%x) {phase=forward, tag=MUST_SAVE, module_path="layers.0", seq_nr=3}
  %b: f32[4] = aten.sin.default(%a) {phase=forward, module_path="layers.1", control=[order %a]}
  %c: f32[4] = aten.mul.Tensor(%b, %y) {phase=backward, module_path="layers.1"}
  return (%b, [%c])
}
graph @unused {owner="g"} {
  %z: f32[4] = placeholder()
  return (%z,)
}
)",
                                  std::nullopt},
                                 [](const Module& module, const ReduceCase&) {
                                   const Graph& graph = module.main();
                                   const NodeId node = graph.find(module.strings.find("b"));
                                   return node.is_valid() && graph[node].is_call();
                                 });
  CHECK(reduced.smallest.graph == R"(fxg 0
graph @g {
  %x: f32[4] = placeholder()
  %b: f32[4] = aten.sin.default(%x)
  return ()
}
)");
}

TEST_CASE("reduce goes up to a far ancestor of the same sizes, and past the last steps of what is returned") {
  const Reduced reduced = reduce({R"(fxg 0
graph @g {
  %x: f32[2, 3] = placeholder()
  %w: f32[3, 2] = placeholder()
  %a: f32[2, 3] = aten.relu.default(%x)
  %b: f32[3, 2](1, 3) = aten.t.default(%a)
  %c: f32[2, 3] = aten.t.default(%b)
  %d: f32[2, 3] = aten.sin.default(%c)
  %e: f32[2, 2] = aten.mm.default(%d, %w)
  %f: f32[] = aten.sum.default(%e)
  return (%f,)
}
)",
                                  std::nullopt},
                                 [](const Module& module, const ReduceCase&) {
                                   // Interesting: an output depends on a relu and on a sin.
                                   const Graph& graph = module.main();
                                   const std::vector<NodeId> leaves = output_leaves(graph);
                                   std::vector<NodeId> read(leaves.begin(), leaves.end());
                                   bool has_relu = false, has_sin = false;
                                   for (size_t i = 0; i < read.size(); ++i) {
                                     has_relu = has_relu || graph.op(read[i]).name == "aten.relu.default";
                                     has_sin = has_sin || graph.op(read[i]).name == "aten.sin.default";
                                     for (const NodeId input : graph.inputs(read[i])) read.push_back(input);
                                   }
                                   return has_relu && has_sin;
                                 });
  CHECK(reduced.smallest.graph == R"(fxg 0
graph @g {
  %x: f32[2, 3] = placeholder()
  %a: f32[2, 3] = aten.relu.default(%x)
  %d: f32[2, 3] = aten.sin.default(%a)
  return (%d,)
}
)");
}

TEST_CASE("reduce keeps what the judge asks for: tags, phases, control dependencies, storages") {
  constexpr std::string_view kText = R"(fxg 0
storage {id=7, bytes=16}
graph @g {
  %x: f32[4]$7 = placeholder()
  %y: f32[4]$7 = placeholder()
  %a: f32[4] = aten.neg.default(%x) {phase=forward, tag=MUST_SAVE}
  %b: f32[4] = aten.sin.default(%a) {phase=backward, tag=MUST_SAVE, control=[order %a]}
  return (%b, %y)
}
)";
  for (const std::string wanted : {"tag=MUST_SAVE", "phase=backward", "order %a", "$7", "bytes=16"}) {
    CAPTURE(wanted);
    const Reduced reduced = reduce({std::string(kText), std::nullopt}, [&](const Module&, const ReduceCase& candidate) {
      return candidate.graph.find(wanted) != std::string::npos;
    });
    CHECK(reduced.report.nodes <= (wanted == "tag=MUST_SAVE" || wanted == "order %a" ? 3 : 2));
    for (const std::string other : {"tag=MUST_SAVE", "phase=", "control=", "$7"}) {
      const bool has = reduced.smallest.graph.find(other) != std::string::npos;
      const bool is_wanted = other.find(wanted) != std::string::npos || wanted.find(other) != std::string::npos ||
                             (wanted == "order %a" && other == "control=") || (wanted == "bytes=16" && other == "$7");
      CAPTURE(other, reduced.smallest.graph);
      CHECK(has == is_wanted);
    }
  }
}

TEST_CASE("reduce leaves out passes and options, never all passes") {
  const std::string text = "fxg 0\ngraph @g {\n  %x: f32[4] = placeholder()\n  return (%x,)\n}\n";
  const auto reduced_passes = [&](const std::string& passes, const std::string& wanted) {
    return *reduce({text, passes}, [&](const Module&, const ReduceCase& candidate) {
              return candidate.passes->find(wanted) != std::string::npos;
            }).smallest.passes;
  };
  const std::string all =
      "canonicalize,cse,sac{recompute-every=3,save-ops=\"aten.mm.default,aten.bmm.default\"},remat,dce";
  CHECK(reduced_passes(all, "sac") == "sac");
  CHECK(reduced_passes(all, "bmm") == "sac{save-ops=\"aten.mm.default,aten.bmm.default\"}");
  CHECK(reduced_passes(all, "every=3") == "sac{recompute-every=3}");
  CHECK(reduced_passes("cse, dce ,cse", "cse") == "cse");
  CHECK(reduced_passes("cse,dce", "") == "cse");
}

TEST_CASE("reduce stops when the judge does, with the smallest case so far") {
  uint64_t seed = 0;
  ReduceCase best{random_case(seed, 300), std::nullopt};
  const size_t before = parse(best.graph)->num_nodes();
  size_t runs = 0;
  const ReduceReport report = reduce_case(best, [&](const ReduceCase& candidate) {
                                if (runs == 5) return Interest::kStop;
                                ++runs;
                                return reads(*parse(candidate.graph), "aten.relu.default", "aten.mm.default")
                                           ? Interest::kInteresting
                                           : Interest::kUninteresting;
                              }).value();
  CHECK_FALSE(report.is_complete);
  CHECK(report.judged == 5);
  CHECK(report.nodes < before);
  CHECK(report.nodes > 4);
  CHECK(parse(best.graph)->num_nodes() == report.nodes);
}

TEST_CASE("reduce refuses what does not parse") {
  ReduceCase bad{"graph", std::nullopt};
  CHECK_FALSE(reduce_case(bad, [](const ReduceCase&) { return Interest::kInteresting; }).ok());
  ReduceCase passes{"fxg 0\ngraph @g {\n  return ()\n}\n", "no-such-pass"};
  const Error error = reduce_case(passes, [](const ReduceCase&) { return Interest::kInteresting; }).error();
  CHECK(error.code == ErrorCode::kUnknownPass);
}

// -- the edits, from text to text
constexpr std::string_view kChain = R"(fxg 0
graph @g {
  %x: f32[4] = placeholder()
  %i: i64[4] = placeholder()
  %a: f32[4] = aten.neg.default(%x)
  %b: f32[4] = aten.sin.default(%a)
  %c: i64[4] = aten.argsort.default(%b)
  %d: f32[4] = aten.add_.Tensor(%a, %b)
  return (%b, %c)
}
)";

std::string without(std::string_view name, StandIn stand_in, Sweep sweep) {
  const std::unique_ptr<Module> module = parse(kChain);
  Graph& graph = module->main();
  CHECK(remove_nodes(graph, {graph.find(module->strings.find(name))}, stand_in, sweep));
  CHECK(verify(*module).empty());
  TextOptions options;
  options.uids = options.version = false;
  return print_text(*module, options);
}

TEST_CASE("reduce: a removed node's users read its input of the same metadata") {
  CHECK(without("b", StandIn::kInput, Sweep::kUnread) == R"(graph @g {
  %x: f32[4] = placeholder()
  %i: i64[4] = placeholder()
  %a: f32[4] = aten.neg.default(%x)
  %c: i64[4] = aten.argsort.default(%a)
  %d: f32[4] = aten.add_.Tensor(%a, %a)
  return (%a, %c)
}
)");
}

TEST_CASE("reduce: where no input fits, users read a placeholder that does") {
  CHECK(without("c", StandIn::kInput, Sweep::kUnread) == R"(graph @g {
  %x: f32[4] = placeholder()
  %i: i64[4] = placeholder()
  %a: f32[4] = aten.neg.default(%x)
  %b: f32[4] = aten.sin.default(%a)
  %d: f32[4] = aten.add_.Tensor(%a, %b)
  return (%b, %i)
}
)");
}

TEST_CASE("reduce: a node becomes a placeholder after the others, and what only it read goes") {
  CHECK(without("a", StandIn::kPlaceholder, Sweep::kUnread) == R"(graph @g {
  %i: i64[4] = placeholder()
  %a: f32[4] = placeholder()
  %b: f32[4] = aten.sin.default(%a)
  %c: i64[4] = aten.argsort.default(%b)
  %d: f32[4] = aten.add_.Tensor(%a, %b)
  return (%b, %c)
}
)");
  CHECK(without("a", StandIn::kPlaceholder, Sweep::kNone).find("%x: f32[4] = placeholder()") != std::string::npos);
}

TEST_CASE("reduce: users go with a node, and outputs that name them, while effects are not swept") {
  CHECK(without("b", StandIn::kNothing, Sweep::kUnread) == R"(graph @g {
  %i: i64[4] = placeholder()
  return ()
}
)");
  CHECK(without("c", StandIn::kNothing, Sweep::kUnread) == R"(graph @g {
  %x: f32[4] = placeholder()
  %i: i64[4] = placeholder()
  %a: f32[4] = aten.neg.default(%x)
  %b: f32[4] = aten.sin.default(%a)
  %d: f32[4] = aten.add_.Tensor(%a, %b)
  return (%b,)
}
)");
}

TEST_CASE("reduce: records that count inputs and outputs follow when some go") {
  const std::unique_ptr<Module> module = parse(R"(fxg 0
invocation {graph="f", bindings=[{input=0}, {input=1}]}
invocation {graph="b", bindings=[{input=0, invocation=0, output=1}, {input=1, invocation=0, output=2}]}
graph @f {num_forward_outputs=2, in_spec="i", out_spec="o"} {
  output_spec {role=user, alias_of_input=0}
  output_spec {role=user}
  output_spec {role=user, alias_of_input=1, alias_of_output=1}
  subclass_layout {type="T", side="output", first=1, count=2}
  subclass_layout {type="T", side="output", first=0, count=1}
  %x: f32[4] = placeholder()
  %y: f32[4] = placeholder()
  %a: f32[4] = aten.neg.default(%y)
  return {"k": %x, "l": [%a], "m": (%y,)}
}
graph @b {
  %p: f32[4] = placeholder()
  %q: f32[4] = placeholder()
  return (%p, %q)
}
)");
  REQUIRE(verify(*module).empty());
  CHECK(remove_outputs(module->main(), {true, false, false}, Sweep::kUnread));
  CHECK(verify(*module).empty());
  TextOptions options;
  options.uids = options.version = false;
  CHECK(print_text(*module, options) == R"(invocation {graph="f", bindings=[{}]}
invocation {graph="b", bindings=[{invocation=0}, {input=1, invocation=0, output=1}]}
graph @f {num_forward_outputs=1} {
  output_spec {role=user}
  output_spec {role=user, alias_of_input=0, alias_of_output=0}
  subclass_layout {type="T", side="output", count=2}
  %y: f32[4] = placeholder()
  %a: f32[4] = aten.neg.default(%y)
  return {"l": [%a], "m": (%y,)}
}
graph @b {
  %p: f32[4] = placeholder()
  %q: f32[4] = placeholder()
  return (%p, %q)
}
)");
  CHECK_FALSE(remove_outputs(module->main(), {false, false}, Sweep::kUnread));
}

}  // namespace
}  // namespace fxopt
