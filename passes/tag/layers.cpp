#include "passes/tag/layers.h"

namespace fxopt {

Layers::Layers(const Graph& graph, const PhaseMap& phases)
    : graph_(graph), phases_(phases), keys_(graph.num_ids(), RegionKey()), is_derived_(graph.num_ids(), false) {
  for (const NodeId node : graph.nodes()) {
    keys_[node] = region_key(graph, node, TagRules::kFxopt);
    if (keys_[node].exists) continue;
    if (!graph[node].is_call()) {
      keys_[node] = key_of_readers(node);
    } else if (!phases.is_backward(node)) {
      keys_[node] = key_of_operands(node);
      is_derived_[node] = true;
    }
  }
}

bool Layers::crosses(NodeId maker, NodeId user) const {
  const RegionKey &from = keys_[maker], &to = keys_[user];
  if (!to.exists) return false;
  const bool enters = !is_derived_[user] && (!from.exists || is_derived_[maker]);
  return enters || from.is_before(to) || to.is_before(from);
}

RegionKey Layers::key_of_readers(NodeId input) const {
  RegionKey key;
  for (UseId use = graph_.first_use(input); use.is_valid(); use = graph_.use(use).next) {
    const NodeId user = graph_.use(use).user;
    if (!graph_[user].is_call() || phases_.is_backward(user)) continue;
    const RegionKey read = region_key(graph_, user, TagRules::kFxopt);
    if (!read.exists) continue;
    if (key.exists && key != read) return {};
    key = read;
  }
  return key;
}

RegionKey Layers::key_of_operands(NodeId call) const {
  RegionKey named, derived;
  NodeId last;
  graph_.for_each_input(call, [&](NodeId input) {
    const RegionKey& key = keys_[input];
    if (!key.exists) return;
    if (!is_derived_[input]) {
      if (!named.exists || named.is_before(key)) named = key;
    } else if (!last.is_valid() || graph_.position(last) < graph_.position(input)) {
      last = input;
      derived = key;
    }
  });
  return named.exists ? named : derived;
}

}  // namespace fxopt
