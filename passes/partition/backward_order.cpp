#include "passes/partition/backward_order.h"

#include <algorithm>
#include <cstdint>

#include "ir/alias/dependence.h"
#include "ir/memory/memory.h"
#include "ir/ops/op.h"
#include "ir/values/values.h"
#include "passes/pass/nodes.h"

namespace fxopt {
namespace {

// The order defined in the header. Empty if no node reads a tangent.
class AutogradOrder {
 public:
  AutogradOrder(const Graph& graph, Facts& facts)
      : graph_(graph), facts_(facts), dependences_(facts.dependences()), is_placed_(graph.num_ids(), false) {}

  std::vector<NodeId> run() {
    const std::vector<NodeId> nodes(graph_.nodes().begin(), graph_.nodes().end());
    const auto begin = std::ranges::find_if(nodes, [this](NodeId node) {
      return any_input(graph_, node, [this](NodeId input) { return is_tangent(graph_, input); });
    });
    if (begin == nodes.end()) return {};
    IdMap<NodeId, bool> is_needed(graph_.num_ids(), false);
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
      is_needed[*at] =
          at < std::make_reverse_iterator(begin) ||
          std::ranges::any_of(dependences_.followers(*at), [&](const Dependence& next) { return is_needed[next.on]; });
    }
    for (const NodeId node : nodes) {
      if (graph_[node].kind == NodeKind::kPlaceholder) place(node);
    }
    for (auto at = nodes.begin(); at != begin; ++at) {
      if (!is_needed[*at] || has_effect(facts_.effects().of(*at), Effect::kMutates)) place(*at);
    }
    for (auto at = begin; at != nodes.end(); ++at) place(*at);
    return std::move(order_);
  }

 private:
  // Places the node after all its dependences, in their present order.
  void place(NodeId last) {
    std::vector<NodeId> open = {last}, found;
    while (!open.empty()) {
      const NodeId node = take_last(open);
      if (is_placed_[node]) continue;
      is_placed_[node] = true;
      found.push_back(node);
      for (const Dependence& dependence : dependences_.of(node)) open.push_back(dependence.on);
    }
    std::ranges::sort(found, {}, [this](NodeId node) { return graph_.position(node); });
    order_.insert(order_.end(), found.begin(), found.end());
  }

  const Graph& graph_;
  Facts& facts_;
  const DependenceMap& dependences_;
  IdMap<NodeId, bool> is_placed_;
  std::vector<NodeId> order_;
};

int64_t peak_of(const Graph& graph, Facts& facts) {
  MemoryOptions options;
  options.inputs = InputLifetime::kBoxed;
  return analyze_memory(graph, facts.storages(), options, &facts.phases()).peak_bytes();
}

}  // namespace

void order_backward(Graph& backward, Facts& facts, bool keeps_lower, PassResult& result) {
  const std::vector<NodeId> old(backward.nodes().begin(), backward.nodes().end());
  const std::vector<NodeId> order = AutogradOrder(backward, facts).run();
  if (order.empty() || order == old) return;
  const int64_t before = keeps_lower ? peak_of(backward, facts) : 0;
  IdMap<NodeId, NodeId> after(backward.num_ids(), NodeId());
  for (size_t i = 1; i < old.size(); ++i) after[old[i]] = old[i - 1];
  backward.set_schedule(order);
  facts.forget();
  if (keeps_lower && before < peak_of(backward, facts)) {
    backward.set_schedule(old);
    facts.forget();
    return;
  }
  for (size_t i = 1; i < order.size(); ++i) result.count("reordered", after[order[i]] == order[i - 1] ? 0 : 1);
}

}  // namespace fxopt
