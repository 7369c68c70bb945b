#include "ir/step/autograd.h"

#include <algorithm>

#include "ir/graph/module.h"
#include "ir/step/phases.h"

namespace fxopt {
namespace {

bool requires_grad(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    const Value& value = graph.value(node);
    if (value.kind == ValueKind::kTensor && graph.pool().tensor(value).requires_grad) return true;
  }
  return false;
}

bool holds_backward(const Graph& graph, const PhaseMap& phases) {
  const auto nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&phases](NodeId node) { return phases.is_backward(node); });
}

bool may_be_differentiated_alone(const Graph& graph, const PhaseMap& phases) {
  if (holds_backward(graph, phases)) return false;
  if (requires_grad(graph)) return true;
  return graph.kind == GraphKind::kUnspecified;
}

}  // namespace

bool may_be_differentiated(const Graph& graph, const PhaseSource& phases) {
  if (graph.kind != GraphKind::kSubgraph) return may_be_differentiated_alone(graph, phases());
  const Module& module = graph.module();
  for (const GraphId id : module.graphs()) {
    const Graph& other = module.graph(id);
    if (other.kind != GraphKind::kSubgraph && may_be_differentiated_alone(other, resolve_phases(other))) return true;
  }
  return false;
}

ModeMap::ModeMap(const Graph& graph) {
  uint32_t stretch = 0;
  for (const NodeId node : graph.nodes()) {
    if (graph[node].is_call() && graph.op(node).has(Effect::kChangesMode)) ++stretch;
    if (stretch > 0) stretches_[node] = stretch;
  }
}

}  // namespace fxopt
