// Graphs of a module: ids stay valid when graphs are added, replaced or removed; files store only
// the order.

#include <string>
#include <vector>

#include "ir/check/verify.h"
#include "ir/graph/module.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

constexpr const char* kThree = R"(graph @a {
  %x: f32[4] = placeholder()
  return (%x,)
}
graph @b {
  %x: f32[4] = placeholder()
  return (%x,)
}
graph @c {
  %x: f32[4] = placeholder()
  return (%x,)
}
)";

// A graph that returns its only input.
Graph& add_identity(Module& module, const char* name) {
  Graph& graph = module.add_graph(module.intern(name));
  const NodeId input = graph.insert_node(NodeId(), NodeKind::kPlaceholder, "x", TargetId());
  const NodeId output = graph.insert_node(NodeId(), NodeKind::kOutput, "output", TargetId());
  const ArgRange result = graph.pool().append(std::vector{Arg::node(input)});
  graph.set_args(output, graph.pool().append(std::vector{Arg::children(ArgKind::kTuple, result)}), ArgRange());
  return graph;
}

std::string names_of(const Module& module) {
  std::string names;
  for (const GraphId id : module.graphs()) names += module.text(module.graph(id).name());
  return names;
}

TEST_CASE("graphs: ids stay valid where others are taken out, and are never given again", "[module]") {
  const std::unique_ptr<Module> module = parse(kThree);
  const GraphId c = module->find_graph(module->intern("c"));
  CHECK(module->graph(c).id() == c);
  module->remove_graphs({module->find_graph(module->intern("b"))});
  CHECK(names_of(*module) == "ac");
  CHECK(module->num_graphs() == 2);
  CHECK(module->num_graph_ids() == 3);
  CHECK(module->graph(c).id() == c);
  CHECK_FALSE(module->find_graph(module->intern("b")).is_valid());
  const Graph& again = add_identity(*module, "b");
  CHECK(again.id().index() == 3);
  CHECK(names_of(*module) == "acb");
}

TEST_CASE("graphs: the first one may be replaced by several, which then begin the module", "[module]") {
  const std::unique_ptr<Module> module = parse(kThree);
  const GraphId forward = add_identity(*module, "f").id(), backward = add_identity(*module, "w").id();
  module->replace_graph(module->main().id(), {forward, backward});
  CHECK(names_of(*module) == "fwbc");
  CHECK(module->main().id() == forward);
  CHECK(verify(*module).empty());
  const std::string text = print_text(*module);
  const std::unique_ptr<Module> read = parse(text);
  CHECK(names_of(*read) == "fwbc");
  CHECK(print_text(*read) == text);
  CHECK(print_text(*module->clone()) == text);
}

TEST_CASE("graphs: counters of names follow their graph, by place in files", "[module]") {
  const std::unique_ptr<Module> module = parse(kThree);
  Graph& c = module->graph(module->find_graph(module->intern("c")));
  Graph& a = module->main();
  CHECK(module->text(c.fresh_name("x")) == "x_1");
  CHECK(module->text(a.fresh_name("x")) == "x_1");
  CHECK(module->text(a.fresh_name("x")) == "x_2");
  const Graph& first = add_identity(*module, "f");
  module->replace_graph(a.id(), {first.id()});
  REQUIRE(module->placed_counters().size() == 1);
  CHECK(module->placed_counters()[0].graph == 2);
  CHECK(module->placed_counters()[0].next == 2);
  const std::unique_ptr<Module> read = parse(print_pb(*module).value(), Format::kPb);
  CHECK(read->text(read->graph(read->find_graph(read->intern("c"))).fresh_name("x")) == "x_2");
  CHECK(read->text(read->main().fresh_name("x")) == "x_1");
}

}  // namespace
}  // namespace fxopt
