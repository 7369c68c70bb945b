#include "ir/alias/operands.h"

namespace fxopt {

WrittenOperands::WrittenOperands(const Graph& graph, EffectMap& effects) : graph_(graph) {
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].is_call() || !has_effect(effects.of(node), Effect::kMutates)) continue;
    graph.for_each_input(node, [&](NodeId input) { given_.insert(key(node, input)); });
  }
}

bool WrittenOperands::has_both(NodeId gone, NodeId kept) const {
  if (given_.empty()) return false;
  for (UseId use = graph_.first_use(gone); use.is_valid(); use = graph_.use(use).next) {
    if (given_.contains(key(graph_.use(use).user, kept))) return true;
  }
  return false;
}

void WrittenOperands::replace(NodeId gone, NodeId kept) {
  if (given_.empty()) return;
  for (UseId use = graph_.first_use(gone); use.is_valid(); use = graph_.use(use).next) {
    const NodeId user = graph_.use(use).user;
    if (given_.contains(key(user, gone))) given_.insert(key(user, kept));
  }
}

}  // namespace fxopt
