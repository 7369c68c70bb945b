#include <string>

#include "ir/alias/storages.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/replaced.h"

namespace fxopt {
namespace {

BufferId buffer_of(const Graph& graph, const StorageMap& storages, std::string_view name) {
  for (const NodeId node : graph.nodes()) {
    if (graph.name_of(node) == name) return storages.buffers(node)[0];
  }
  FAIL("no node " << name);
  return BufferId();
}

// PyTorch records the results of both calls on the same storages.
constexpr const char* kCalledTwice = R"(
  storage {id=0, bytes=16}
  storage {id=1, bytes=16}
  graph @g {
    attribute {path="r", graph="g.r"}
    %x: f32[4] = placeholder()
    %y: f32[4] = placeholder()
    %r = get_attr["r"]()
    %a: (f32[4]$0, f32[4]$1) = higher_order.invoke_subgraph(%r, "r", %x)
    %a0: f32[4]$0 = operator.getitem(%a, 0)
    %a1: f32[4]$1 = operator.getitem(%a, 1)
    %b: (f32[4]$0, f32[4]$1) = higher_order.invoke_subgraph(%r, "r", %y)
    %b0: f32[4]$0 = operator.getitem(%b, 0)
    %b1: f32[4]$1 = operator.getitem(%b, 1)
    return (%a0, %a1, %b0, %b1)
  }
  graph @g.r {kind=subgraph, owner="g"} {
    %p: f32[4] = placeholder()
    %s: f32[4] = aten.sin.default(%p)
    %v: f32[4] = aten.view.default(%p, [4])
    return (%s, %v)
  })";

TEST_CASE("regions: results lie where the body says, call by call", "[alias][regions]") {
  const std::unique_ptr<Module> module = parse(kCalledTwice);
  const Graph& graph = module->main();
  const StorageMap storages(graph);
  CHECK(buffer_of(graph, storages, "a1") == buffer_of(graph, storages, "x"));
  CHECK(buffer_of(graph, storages, "b1") == buffer_of(graph, storages, "y"));
  CHECK(buffer_of(graph, storages, "a0") != buffer_of(graph, storages, "b0"));
  CHECK(storages.alias_class(buffer_of(graph, storages, "a0")) !=
        storages.alias_class(buffer_of(graph, storages, "b0")));
}

TEST_CASE("regions: inputs that may be results of regions have memory of their own, which they may share",
          "[alias][regions]") {
  const std::string inputs = R"(
    storage {id=0, bytes=16}
    graph @g {kind=backward} {
      CALL
      %p: f32[4]$0 = placeholder()
      %q: f32[4]$0 = placeholder()
      %w: f32[4]$0 = placeholder() {input={role=parameter, user_index=0}}
      %v: f32[4]$0 = placeholder() {input={role=parameter, user_index=1}}
      USE
      return (%p, %q)
    })";
  const auto with = [&inputs](const std::string& attribute, const std::string& use, const std::string& body) {
    return replaced(replaced(inputs, "CALL", attribute), "USE", use) + body;
  };
  const std::unique_ptr<Module> regions =
      parse(with("attribute {path=\"r\", graph=\"g.r\"}",
                 "%r = get_attr[\"r\"]()\n%c: (f32[4],) = higher_order.invoke_subgraph(%r, \"r\", %p)",
                 "\ngraph @g.r {kind=subgraph, owner=\"g\"} {\n%a: f32[4] = placeholder()\n%s: f32[4] = "
                 "aten.sin.default(%a)\nreturn (%s,)\n}"));
  const StorageMap apart(regions->main());
  const BufferId p = buffer_of(regions->main(), apart, "p"), q = buffer_of(regions->main(), apart, "q");
  CHECK(p != q);
  CHECK(apart.alias_class(p) == apart.alias_class(q));
  CHECK(buffer_of(regions->main(), apart, "w") == buffer_of(regions->main(), apart, "v"));  // both in the caller
  const std::unique_ptr<Module> plain = parse(with("", "", ""));
  const StorageMap one(plain->main());
  CHECK(buffer_of(plain->main(), one, "p") == buffer_of(plain->main(), one, "q"));
}

TEST_CASE("regions: a body that is not known may return any operand", "[alias][regions]") {
  const std::string body = "graph @g.r {kind=subgraph, owner=\"g\"}";
  std::string text = replaced(kCalledTwice, "%s: f32[4] = aten.sin.default(%p)",
                              "%q = get_attr[\"q\"]()\n%s: f32[4] = higher_order.invoke_subgraph(%q, \"q\", %p)");
  text.insert(text.find(body) + body.size() + 2, "attribute {path=\"q\", graph=\"g.r\"}\n");  // it calls itself
  const std::unique_ptr<Module> module = parse(text);
  const StorageMap storages(module->main());
  CHECK(storages.alias_class(buffer_of(module->main(), storages, "a0")) ==
        storages.alias_class(buffer_of(module->main(), storages, "x")));
}

}  // namespace
}  // namespace fxopt
