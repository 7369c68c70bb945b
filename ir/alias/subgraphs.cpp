#include "ir/alias/subgraphs.h"

namespace fxopt {

SubgraphNames::SubgraphNames(const Graph& graph) {
  for (const Attribute& attribute : graph.attributes) {
    if (attribute.path.is_valid() && attribute.graph.is_valid()) attributes_.emplace(attribute.path, attribute.graph);
  }
}

StringId SubgraphNames::held_by(const Graph& graph, NodeId node) const {
  if (graph[node].kind != NodeKind::kGetAttr || !graph[node].target.is_valid()) return StringId();
  const auto found = attributes_.find(graph.module().target(graph[node].target).name);
  return found == attributes_.end() ? StringId() : found->second;
}

}  // namespace fxopt
