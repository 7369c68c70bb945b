#include "ir/summary/neighbours.h"

#include <memory>

#include "ir/graph/module.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

std::string around(const Graph& graph, const std::vector<std::string>& names, size_t distance) {
  std::vector<NodeId> starts;
  for (const std::string& name : names) starts.push_back(graph.find(graph.module().strings.find(name)));
  std::string text;
  for (const NodeId node : neighbourhood(graph, starts, distance)) {
    text += (text.empty() ? "" : " ") + std::string(graph.name_of(node));
  }
  return text;
}

TEST_CASE("neighbourhood: both directions, in schedule order, not on through what many share") {
  const std::unique_ptr<Module> module = parse(R"(fxg 0
graph @main {
  %x: f32[4] = placeholder()
  %a: f32[4] = aten.neg.default(%x)
  %b: f32[4] = aten.neg.default(%a)
  %c: f32[4] = aten.neg.default(%b)
  %other: f32[4] = aten.neg.default(%x)
  %output = output((%c, %other))
}
)");
  const Graph& graph = module->main();
  CHECK(around(graph, {"b"}, 0) == "b");
  CHECK(around(graph, {"b"}, 1) == "a b c");
  CHECK(around(graph, {"b"}, 2) == "x a b c output");
  CHECK(around(graph, {"b"}, 100) == "x a b c output");  // %other depends on an input
  CHECK(around(graph, {"x"}, 1) == "x a other");         // but a start may be an input
  CHECK(around(graph, {"c", "x"}, 0) == "x c");
  CHECK(around(graph, {}, 3).empty());
}

}  // namespace
}  // namespace fxopt
