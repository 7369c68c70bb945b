// The dependences of each node, case by case: just inside and just outside each rule.
// scripts/peers/orders.py checks with PyTorch that permitted orders compute the same.

#include "ir/alias/dependence.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ir/step/facts.h"
#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/property/random_module.h"

namespace fxopt {
namespace {

NodeId node_named(const Graph& graph, std::string_view name) {
  const NodeId node = graph.find(graph.module().strings.find(name));
  REQUIRE(node.is_valid());
  return node;
}

// "b: a storage, c mode; d: b control": dependences other than values, for nodes that have any.
std::string beside_values(const std::string& body) {
  const std::unique_ptr<Module> module = parse("graph @g {\n" + body + "}\n");
  ModuleFacts facts(*module);
  const Graph& graph = module->main();
  const DependenceMap& dependences = facts.of(graph).dependences();
  std::string text;
  for (const NodeId node : graph.nodes()) {
    std::string parts;
    for (const Dependence& each : dependences.of(node)) {
      if (each.why == DependenceKind::kValue) continue;
      parts += (parts.empty() ? "" : ", ") + std::string(graph.name_of(each.on)) + " " + std::string(name_of(each.why));
    }
    if (!parts.empty()) text += (text.empty() ? "" : "; ") + std::string(graph.name_of(node)) + ": " + parts;
  }
  return text;
}

const std::string kInputs = "  %x: f32[4, 4] = placeholder()\n  %y: f32[4, 4] = placeholder()\n";

TEST_CASE("dependence: reads and writes of one memory keep their order, reads among themselves do not",
          "[dependence]") {
  CHECK(beside_values(kInputs +
                      "  %before: f32[4, 4] = aten.neg.default(%x)\n  %other: f32[4, 4] = aten.neg.default(%y)\n"
                      "  %write: f32[4, 4] = aten.add_.Tensor(%x, %y)\n  %after: f32[4, 4] = aten.exp.default(%x)\n"
                      "  %again: f32[4, 4] = aten.mul_.Tensor(%x, %y)\n  return (%before, %other, %after)\n") ==
        "write: before storage; after: write storage; again: write storage, after storage");
}

TEST_CASE("dependence: a view moves across writes of its base, what reads through it does not", "[dependence]") {
  CHECK(
      beside_values(kInputs +
                    "  %early: f32[16] = aten.view.default(%x, [16])\n  %write: f32[4, 4] = aten.add_.Tensor(%x, %y)\n"
                    "  %late: f32[16] = aten.view.default(%x, [16])\n  %read: f32[16] = aten.neg.default(%early)\n"
                    "  return (%late, %read)\n") == "read: write storage");
}

TEST_CASE("dependence: a change of sizes is crossed by what is given other tensors on the same memory",
          "[dependence]") {
  CHECK(beside_values(kInputs +
                      "  %v: f32[4, 4] = aten.alias.default(%x)\n  %before: f32[4, 4] = aten.neg.default(%x)\n"
                      "  %turn: f32[4, 4] = aten.t_.default(%x)\n  %after: f32[4, 4] = aten.neg.default(%x)\n"
                      "  %beside: f32[4, 4] = aten.neg.default(%v)\n  return (%before, %after, %beside)\n") ==
        "turn: before metadata, v metadata; after: turn metadata");
}

TEST_CASE("dependence: draws keep their order, but for those with a recorded place", "[dependence]") {
  CHECK(beside_values(kInputs + "  %a: f32[4, 4] = aten.bernoulli.default(%x)\n"
                                "  %b: f32[4, 4] = aten.bernoulli.default(%x) {rng={slot=\"s\", offset=0}}\n"
                                "  %c: f32[4, 4] = aten.bernoulli.default(%y)\n  return (%a, %b, %c)\n") ==
        "c: a random");
}

TEST_CASE("dependence: collectives of one group keep their order, those of an unknown group with all", "[dependence]") {
  const auto reduce = [](const std::string& name, const std::string& of, const std::string& group) {
    return "  %" + name + ": f32[4, 4] = _c10d_functional.all_reduce.default(" + of + ", \"sum\", " + group + ")\n";
  };
  CHECK(beside_values(kInputs + reduce("a", "%x", "\"0\"") + reduce("b", "%y", "\"1\"") + reduce("c", "%y", "\"0\"") +
                      "  return (%a, %b, %c)\n") == "c: a collective");
  CHECK(beside_values(kInputs + reduce("a", "%x", "\"0\"") + reduce("b", "%y", "None") + reduce("c", "%y", "\"1\"") +
                      "  return (%a, %b, %c)\n") == "b: a collective; c: b collective");
}

TEST_CASE("dependence: what a collective reads may be written after its wait, what it writes is there after it",
          "[dependence]") {
  CHECK(beside_values(kInputs + "  %r: f32[4, 4] = _c10d_functional.all_reduce.default(%x, \"sum\", \"0\")\n"
                                "  %w: f32[4, 4] = _c10d_functional.wait_tensor.default(%r)\n"
                                "  %write: f32[4, 4] = aten.add_.Tensor(%x, %y)\n  return (%w,)\n") ==
        "write: w storage, r storage");
  CHECK(
      beside_values(kInputs +
                    "  %whole: f32[8, 4] = aten.empty.memory_format([8, 4])\n"
                    "  %v: f32[4, 4] = aten.slice.Tensor(%whole, 0, 0, 4)\n"
                    "  %g: f32[8, 4] = _c10d_functional.all_gather_into_tensor_out.default(%x, 2, \"0\", out=%whole)\n"
                    "  %w: f32[8, 4] = _c10d_functional.wait_tensor.default(%g)\n"
                    "  %read: f32[4, 4] = aten.neg.default(%v)\n  return (%w, %read)\n") == "read: w storage");
}

TEST_CASE("dependence: an undescribed op keeps what has effects on its side, pure nodes pass", "[dependence]") {
  CHECK(beside_values(kInputs +
                      "  %pure: f32[4, 4] = aten.neg.default(%y)\n  %draw: f32[4, 4] = aten.bernoulli.default(%y)\n"
                      "  %odd: f32[4, 4] = mylib.odd.default(%x)\n  %late: f32[4, 4] = aten.neg.default(%y)\n"
                      "  %second = mylib.odd.default()\n  return (%pure, %draw, %odd, %late)\n") ==
        "odd: draw effect; second: odd effect");
}

TEST_CASE("dependence: a change of mode is a border for every call", "[dependence]") {
  CHECK(beside_values(kInputs + "  %a: f32[4, 4] = aten.neg.default(%x)\n  %m = torch._C._set_grad_enabled(False)\n"
                                "  %b: f32[4, 4] = aten.neg.default(%y)\n  return (%a, %b)\n") ==
        "m: a mode; b: m mode");
}

TEST_CASE("dependence: control dependencies, and events on one stream", "[dependence]") {
  CHECK(beside_values(kInputs + "  %a: f32[4, 4] = aten.neg.default(%x)\n"
                                "  %b: f32[4, 4] = aten.neg.default(%y) {control=[order %a]}\n  return (%a, %b)\n") ==
        "b: a control");
  CHECK(beside_values(kInputs + "  %a: f32[4, 4] = aten.neg.default(%x) {stream=\"s\"}\n"
                                "  %r: f32[4, 4] = aten.exp.default(%x) {stream=\"s\", event_record=[\"e\"]}\n"
                                "  %other: f32[4, 4] = aten.neg.default(%y)\n"
                                "  %w: f32[4, 4] = aten.exp.default(%y) {event_wait=[\"e\"]}\n"
                                "  %late: f32[4, 4] = aten.neg.default(%y)\n  return (%a, %r, %other, %w, %late)\n") ==
        "r: a event; w: other event, r event; late: w event");
}

TEST_CASE("dependence: the ends of a graph stay", "[dependence]") {
  const std::unique_ptr<Module> module =
      parse("graph @g {\n" + kInputs +
            "  %a: f32[4, 4] = aten.neg.default(%x)\n  %b: f32[4, 4] = aten.neg.default(%y)\n  return (%a, %b)\n}\n");
  ModuleFacts facts(*module);
  Graph& graph = module->main();
  const DependenceMap& dependences = facts.of(graph).dependences();
  const auto at = [&graph](std::string_view name) { return node_named(graph, name); };
  CHECK(dependences.can_move(at("b"), at("a")));
  CHECK(dependences.can_move(at("a"), graph.output()));
  CHECK(dependences.obstacle(at("a"), at("y")) == Dependence{at("y"), DependenceKind::kBoundary});
  CHECK(dependences.obstacle(at("a"), NodeId())->why == DependenceKind::kBoundary);
  CHECK(dependences.obstacle(at("x"), at("a")) == Dependence{at("y"), DependenceKind::kBoundary});
  CHECK_FALSE(dependences.can_move(graph.output(), at("a")));
  const std::vector<NodeId> swapped = {at("x"), at("y"), at("b"), at("a"), graph.output()};
  CHECK_FALSE(dependences.violation(swapped).has_value());
  const std::vector<NodeId> inputs = {at("y"), at("x"), at("a"), at("b"), graph.output()};
  CHECK(dependences.violation(inputs)->dependence.why == DependenceKind::kBoundary);
  graph.set_schedule(swapped);
  CHECK(graph.position(at("b")) == 2);
  CHECK(graph.next(at("a")) == graph.output());
  CHECK(graph.first() == at("x"));
  CHECK_THROWS_AS(graph.set_schedule(std::vector<NodeId>{at("x"), at("y"), at("b"), at("b"), graph.output()}),
                  InternalError);
  CHECK_THROWS_AS(graph.set_schedule(std::vector<NodeId>{at("a"), at("y"), at("b"), at("x"), graph.output()}),
                  InternalError);
}

// Checks a single move by the definition: in the new order every node must follow all its
// dependences.
bool may_move(const Graph& graph, const DependenceMap& dependences, NodeId node, NodeId before) {
  std::vector<NodeId> order;
  for (const NodeId each : graph.nodes()) {
    if (each == before) order.push_back(node);
    if (each != node) order.push_back(each);
  }
  return !dependences.violation(order).has_value();
}

TEST_CASE("dependence: a move is permitted when the order with it is, on random graphs", "[dependence]") {
  std::mt19937_64 random(7);
  size_t permitted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const RandomModule made = random_module(seed);
    ModuleFacts facts(*made.module);
    Graph& graph = made.module->main();
    const DependenceMap& dependences = facts.of(graph).dependences();
    std::vector<NodeId> nodes;
    for (const NodeId node : graph.nodes()) nodes.push_back(node);
    for (int i = 0; i < 60; ++i) {
      const NodeId node = nodes[random() % nodes.size()], before = nodes[random() % nodes.size()];
      if (node == before || graph.next(node) == before) continue;
      INFO("seed " << seed << ": " << graph.name_of(node) << " before " << graph.name_of(before));
      const bool may = dependences.can_move(node, before);
      const bool is_end = graph[node].kind == NodeKind::kPlaceholder || graph[node].kind == NodeKind::kOutput;
      CHECK(may == (!is_end && may_move(graph, dependences, node, before)));  // ends never move, not even harmlessly
      ++(may ? permitted : refused);
      if (may) graph.move_before(node, before);  // the map holds in every permitted order
    }
  }
  CHECK(permitted > 500);
  CHECK(refused > 1000);
}

TEST_CASE("dependence: followers are the same edges from the other end", "[dependence]") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const RandomModule made = random_module(seed);
    ModuleFacts facts(*made.module);
    const Graph& graph = made.module->main();
    const DependenceMap& dependences = facts.of(graph).dependences();
    std::multiset<std::pair<NodeId, NodeId>> down, up;
    for (const NodeId node : graph.nodes()) {
      for (const Dependence& each : dependences.of(node)) down.emplace(each.on, node);
      for (const Dependence& each : dependences.followers(node)) up.emplace(node, each.on);
    }
    CHECK(down == up);
  }
}

}  // namespace
}  // namespace fxopt
