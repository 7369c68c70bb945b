#include "ir/alias/operands.h"

#include <algorithm>

#include "ir/alias/effects.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Whether the call returns its first argument as the same tensor object.
bool returns_first_argument(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  if (view_of_call(graph, node) == ViewKind::kIdentity) return true;
  return op.aliases.size() == 1 && op.aliases[0] == 0 && std::ranges::find(op.writes, 0) != op.writes.end();
}

}  // namespace

WrittenOperands::WrittenOperands(const Graph& graph, EffectMap& effects) : graph_(graph) {
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].is_call()) continue;
    if (!has_effect(effects.of(node), Effect::kMutates)) continue;
    graph.for_each_input(node, [&](NodeId input) { given_.insert(key(node, tensor_of(input))); });
    const NodeId first = first_argument(graph, node);
    if (!first.is_valid() || !returns_first_argument(graph, node)) continue;
    tensors_[node] = tensor_of(first);
    results_[tensor_of(first)].push_back(node);
  }
}

NodeId WrittenOperands::tensor_of(NodeId node) const {
  const NodeId known = tensors_.get(node);
  return known.is_valid() ? known : node;
}

bool WrittenOperands::has_both(NodeId gone, NodeId kept) const {
  if (given_.empty()) return false;
  const NodeId tensor = tensor_of(kept);
  if (is_given_with(gone, tensor)) return true;
  // In-place ops on `gone` return the same tensor object.
  const auto found = results_.find(gone);
  return found != results_.end() &&
         std::ranges::any_of(found->second, [&](NodeId result) { return is_given_with(result, tensor); });
}

bool WrittenOperands::is_given_with(NodeId node, NodeId tensor) const {
  for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
    if (given_.contains(key(graph_.use(use).user, tensor))) return true;
  }
  return false;
}

void WrittenOperands::add_uses(NodeId node, NodeId tensor) {
  for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
    const NodeId user = graph_.use(use).user;
    if (given_.contains(key(user, tensor_of(node)))) given_.insert(key(user, tensor));
  }
}

void WrittenOperands::replace(NodeId gone, NodeId kept) {
  if (given_.empty()) return;
  const NodeId old = tensor_of(gone);
  const NodeId tensor = tensor_of(kept);
  add_uses(gone, tensor);
  const auto found = results_.find(old);
  if (old != gone || found == results_.end()) return;
  // From now on, in-place ops on `gone` return the tensor of `kept`.
  const std::vector<NodeId> results = found->second;
  results_.erase(old);
  for (const NodeId result : results) {
    add_uses(result, tensor);
    tensors_[result] = tensor;
    results_[tensor].push_back(result);
  }
}

}  // namespace fxopt
