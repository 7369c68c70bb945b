#include "ir/alias/order.h"

namespace fxopt {

std::span<const ControlDep> control_of(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr ? std::span(extra->control) : std::span<const ControlDep>();
}

bool has_events(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && (!extra->event_record.empty() || !extra->event_wait.empty());
}

bool is_held(const Graph& graph, NodeId node) { return !control_of(graph, node).empty() || has_events(graph, node); }

std::optional<StringId> stream_of(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr ? extra->stream : std::nullopt;
}

IdMap<NodeId, bool> control_targets(const Graph& graph) {
  IdMap<NodeId, bool> found(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) {
    for (const ControlDep& dep : control_of(graph, node)) found[dep.node] = true;
  }
  return found;
}

}  // namespace fxopt
