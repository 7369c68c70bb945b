#include "passes/partition/save_network.h"

#include <string>
#include <utility>

#include "passes/pass/refusal.h"

namespace fxopt {

SaveNetwork::SaveNetwork(const Graph& graph) : graph_(graph) {
  arcs_.reserve(2 * graph.num_nodes() + graph.num_edges());
}

Result<SaveNetwork::Cut> SaveNetwork::solve() const {
  const uint32_t num_vertices = sink_ + 1;
  Result<MinCut> found = min_cut(num_vertices, arcs_, source_, sink_);
  if (!found.ok()) return std::move(found).error();
  if (!found->value.has_value()) {
    const std::vector<NodeId> by_place(graph_.nodes().begin(), graph_.nodes().end());
    NodeId first;
    std::string way;
    for (const uint32_t vertex : found->unlimited_path) {
      if (vertex == source_ || vertex == sink_) continue;
      const NodeId node = by_place[vertex / 2];
      if (vertex % 2 != 0 && first.is_valid()) continue;
      if (!first.is_valid()) first = node;
      way += std::string(way.empty() ? "" : " -> ") + quoted(graph_, node);
    }
    return refused(
        graph_, first, "backward needs a value that can be neither saved nor recomputed: " + way,
        "put save tags on the results of the call (its getitem nodes), not on the call. A call that draws random "
        "numbers, writes memory or waits is never recomputed");
  }
  Cut cut;
  cut.cost = *found->value;
  cut.is_after = IdMap<NodeId, bool>(graph_.num_ids(), false);
  for (const NodeId node : graph_.nodes()) cut.is_after[node] = found->is_sink_side[in(node)];
  return cut;
}

}  // namespace fxopt
