#include "ir/alias/layouts.h"

#include <algorithm>

#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Returns false if a stride or a size after the first size is symbolic. Ignores the strides of
// dimensions with one element.
bool is_contiguous(const Module& module, const Tensor& tensor) {
  if (!tensor.sizes.is_valid() || !tensor.strides.is_valid()) return false;
  const std::vector<Dim>& sizes = module.dims(tensor.sizes);
  const std::vector<Dim>& strides = module.dims(tensor.strides);
  if (sizes.size() != strides.size()) return false;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (!sizes[i].is_static()) return i == 0 && strides[i].is_static() && strides[i].value == expected;
    if (sizes[i].value == 1) continue;
    if (!strides[i].is_static() || strides[i].value != expected) return false;
    expected *= sizes[i].value;
  }
  return true;
}

// Whether all inputs of the call are contiguous. If so, the recorded layouts of its results are
// reliable, except for an FFT.
bool is_given_contiguous(const Graph& graph, NodeId node) {
  bool is_all = true;
  graph.for_each_input(node, [&](NodeId input) {
    if (graph.value(input).kind == ValueKind::kAbsent) is_all = false;
    for_each_tensor(graph, graph[input].value,
                    [&](ValueId, const Tensor& tensor) { is_all = is_all && is_contiguous(graph.module(), tensor); });
  });
  return is_all;
}

bool lays_out_itself(const Op& op) {
  return op.compute == ComputeClass::kContraction || op.compute == ComputeClass::kAttention ||
         op.compute == ComputeClass::kScalar || sets_strides(op);
}

}  // namespace

IdMap<NodeId, bool> find_doubtful_layouts(const Graph& graph) {
  IdMap<NodeId, bool> is_doubtful;
  const auto nodes = graph.nodes();
  const bool is_needed = std::ranges::any_of(
      nodes, [&graph](NodeId node) { return graph[node].is_call() && graph.op(node).chooses_layout; });
  if (!is_needed) return is_doubtful;
  is_doubtful = IdMap<NodeId, bool>(graph.num_ids(), false);
  for (const NodeId node : nodes) {
    if (!graph[node].is_call()) continue;
    const Op& op = graph.op(node);
    bool follows = false;
    graph.for_each_input(node, [&](NodeId input) { follows = follows || is_doubtful.get(input); });
    const bool is_transform =
        op.name.starts_with("aten._fft_");  // an FFT permutes dimensions even if its input is contiguous
    const bool chooses = op.chooses_layout && (is_transform || !is_given_contiguous(graph, node));
    is_doubtful[node] = chooses || (follows && (op.chooses_layout || !lays_out_itself(op)));
  }
  return is_doubtful;
}

bool reads_layout(const Graph& graph, NodeId node) {
  if (!graph[node].is_call()) return false;
  const Op& op = graph.op(node);
  return op.view == ViewKind::kMaybeView || sets_strides(op) || op.name == "aten.view.default" ||
         op.name == "aten._unsafe_view.default";
}

}  // namespace fxopt
