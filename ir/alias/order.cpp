#include "ir/alias/order.h"

namespace fxopt {

bool has_events(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && (!extra->event_record.empty() || !extra->event_wait.empty());
}

bool is_held(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && (!extra->control.empty() || has_events(graph, node));
}

std::optional<StringId> stream_of(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr ? extra->stream : std::nullopt;
}

IdMap<NodeId, bool> control_targets(const Graph& graph) {
  IdMap<NodeId, bool> found(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) {
    const NodeExtra* extra = graph.extra(node);
    if (extra == nullptr) continue;
    for (const ControlDep& dep : extra->control) found[dep.node] = true;
  }
  return found;
}

}  // namespace fxopt
