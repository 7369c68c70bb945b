// Effects of calls that run graphs: effects of the subgraphs count at any depth, and each subgraph
// is visited only once.

#include "ir/alias/effect_map.h"

#include <memory>
#include <string>
#include <utility>

#include "ir/io/io.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

// @main runs @outer twice; @outer runs @inner through an attribute, and @inner runs `inner`.
std::string nested(const std::string& inner) {
  return "graph @main {\n  %x: f32[4] = placeholder()\n  %a: (f32[4],) = higher_order.wrap(@outer, %x)\n"
         "  %b: (f32[4],) = higher_order.wrap(@outer, %x)\n  return (%a, %b)\n}\n"
         "graph @outer {\n  attribute {path=\"body\", graph=\"inner\"}\n  %x: f32[4] = placeholder()\n"
         "  %body: graph(@inner) = get_attr[\"body\"]()\n  %a: (f32[4],) = higher_order.wrap(%body, %x)\n"
         "  return (%a,)\n}\n"
         "graph @inner {\n  %x: f32[4] = placeholder()\n  %y: f32[4] = " +
         inner + "\n  return (%y,)\n}\n";
}

// The effects of %a and %b of @main, from a private map and from a shared map that was queried for
// another graph before.
Effect effects(const std::string& text) {
  const std::unique_ptr<Module> module = parse(text);
  const Graph& main = module->main();
  const NodeId a = main.find(module->intern("a")), b = main.find(module->intern("b"));
  const Effect own = EffectMap(main).of(a);
  SubgraphEffects subgraphs(*module);
  const Graph& outer = module->graph(module->find_graph(module->intern("outer")));
  EffectMap(outer, subgraphs).of(outer.find(module->intern("a")));
  EffectMap shared(main, subgraphs);
  CHECK(shared.of(a) == own);
  CHECK(shared.of(b) == own);
  return own;
}

TEST_CASE("effect map: a call has the effects of what it runs, however deep") {
  CHECK(effects(nested("aten.exp.default(%x)")) == Effect::kNone);
  CHECK(effects(nested("aten.bernoulli.default(%x)")) == Effect::kRandom);
  CHECK(has_effect(effects(nested("aten.exp_.default(%x)")), Effect::kUnknownWrites));
  CHECK(has_effect(effects(nested("nobody.knows.default(%x)")), Effect::kOpaque));
}

TEST_CASE("effect map: a graph that is not there, or runs itself, may do anything") {
  CHECK(effects(nested("higher_order.wrap(@nowhere, %x)")) == kUndescribed);
  CHECK(effects(nested("higher_order.wrap(@inner, %x)")) == kUndescribed);
  CHECK(effects(nested("higher_order.wrap(@outer, %x)")) == kUndescribed);
}

}  // namespace
}  // namespace fxopt
