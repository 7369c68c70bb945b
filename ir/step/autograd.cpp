#include "ir/step/autograd.h"

#include <algorithm>
#include <iterator>

#include "ir/graph/module.h"
#include "ir/step/phases.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

bool requires_grad(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    const Value& value = graph.value(node);
    if (value.kind == ValueKind::kTensor && graph.pool().tensor(value).requires_grad) return true;
  }
  return false;
}

bool may_be_differentiated_alone(const Graph& graph, const PhaseMap& phases) {
  if (holds_backward(graph, phases)) return false;
  if (requires_grad(graph)) return true;
  return graph.kind == GraphKind::kUnspecified;
}

// Integers and booleans have no gradients.
bool may_have_gradient(DType dtype) {
  static constexpr DType kWithout[] = {DType::kBool, DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64,
                                       DType::kInt8, DType::kInt16, DType::kInt32,  DType::kInt64};
  return std::ranges::find(kWithout, dtype) == std::end(kWithout);
}

bool may_have_gradient(const Graph& graph, NodeId node) {
  if (graph.value(node).kind == ValueKind::kAbsent) return true;
  bool found = false;
  for_each_tensor(graph, graph[node].value,
                  [&found](ValueId, const Tensor& tensor) { found = found || may_have_gradient(tensor.dtype); });
  return found;
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

bool ends_gradients(const Op& op) { return op.name == "aten.detach.default" || op.name == "aten.view.dtype"; }

IdMap<NodeId, bool> reached_by_gradients(const Graph& graph, const StorageMap& storages) {
  IdMap<NodeId, bool> reached(graph.num_ids());
  const auto is_written = [&storages](BufferId buffer) { return storages.is_written(buffer); };
  for (const NodeId node : graph.nodes()) {
    if (!may_have_gradient(graph, node)) continue;
    if (graph[node].is_call() && ends_gradients(graph.op(node))) continue;
    bool is_reached = !graph[node].is_call();
    graph.for_each_input(node, [&](NodeId input) { is_reached = is_reached || reached.get(input); });
    reached[node] = is_reached || any_buffer(storages.buffers(node), is_written);
  }
  return reached;
}

ModeMap::ModeMap(const Graph& graph) {
  uint32_t stretch = 0;
  for (const NodeId node : graph.nodes()) {
    if (graph[node].is_call() && graph.op(node).has(Effect::kChangesMode)) ++stretch;
    if (stretch > 0) stretches_[node] = stretch;
  }
}

}  // namespace fxopt
