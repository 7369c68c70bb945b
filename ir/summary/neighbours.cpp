#include "ir/summary/neighbours.h"

#include <utility>

namespace fxopt {
std::vector<NodeId> neighbourhood(const Graph& graph, const std::vector<NodeId>& starts, size_t distance) {
  IdMap<NodeId, bool> is_in(graph.num_ids());
  std::vector<NodeId> front, next;
  const auto reach = [&](NodeId node) {
    if (is_in.get(node)) return;
    is_in[node] = true;
    next.push_back(node);
  };
  for (const NodeId node : starts) reach(node);
  for (size_t step = 0; step < distance && !next.empty(); ++step) {
    front = std::exchange(next, {});
    for (const NodeId node : front) {
      if (step > 0 && !graph[node].runs()) continue;
      graph.for_each_input(node, reach);
      for (UseId use = graph.first_use(node); use.is_valid(); use = graph.use(use).next) reach(graph.use(use).user);
    }
  }
  std::vector<NodeId> nodes;
  for (const NodeId node : graph.nodes()) {
    if (is_in.get(node)) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace fxopt
