#include "ir/step/halves.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "ir/alias/order.h"
#include "ir/ops/op.h"
#include "ir/step/origins.h"
#include "ir/values/elements.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

bool is_symbolic(const Graph& graph, NodeId node) { return graph.value(node).kind == ValueKind::kSymbolic; }

// Recomputed copies are excluded, because a pass decided that backward computes them.
bool is_size(const Graph& graph, NodeId node) {
  return is_symbolic(graph, node) && graph.op(node).is_pure() && !is_recomputed(graph, node);
}

// Whether backward reads only the tensor's sizes. In that case, the tensor need not be saved.
bool backward_reads_sizes_of(const Graph& graph, const PhaseMap& phases, NodeId node) {
  if (graph.value(node).kind != ValueKind::kTensor) return false;
  for (UseId use = graph.first_use(node); use.is_valid(); use = graph.use(use).next) {
    const NodeId user = graph.use(use).user;
    if (graph[user].runs() && phases.is_backward(user) && !is_symbolic(graph, user)) return false;
  }
  return true;
}

class Halver {
 public:
  Halver(const Graph& graph, const PhaseMap& phases, const RoleMap& roles)
      : graph_(graph), phases_(phases), roles_(roles) {
    halves_.in_backward = IdMap<NodeId, bool>(graph.num_ids(), false);
  }

  JointHalves run() {
    sort_calls();
    sort_inputs();
    count_outputs();
    return std::move(halves_);
  }

 private:
  void sort_calls() {
    for (const NodeId node : graph_.nodes()) {
      halves_.in_backward[node] =
          is_tangent(graph_, node) || (graph_[node].runs() && phases_.is_backward(node) && !is_forward_part(node));
    }
  }

  void sort_inputs() {
    std::vector<NodeId> states;
    for (const NodeId node : placeholders_of(graph_)) {
      const bool is_state = is_state_of_backward(node);
      (is_state ? states : halves_.in_backward[node] ? halves_.arriving : halves_.primals).push_back(node);
      halves_.in_backward[node] = halves_.in_backward[node] || is_state;
    }
    halves_.arriving.insert(halves_.arriving.end(), states.begin(), states.end());
  }

  // Whether the node is a state, such as a generator state, that the runtime passes directly to
  // backward.
  bool is_state_of_backward(NodeId node) const {
    constexpr InputRole kStates[] = {InputRole::kRngState, InputRole::kSeed, InputRole::kRngOffset, InputRole::kToken,
                                     InputRole::kBackwardState};
    if (std::ranges::find(kStates, recorded_role(graph_, node)) == std::end(kStates)) {
      return false;
    }
    // AOTAutograd gives these inputs the prefix "bwd_".
    if (!graph_.has_users(node)) return graph_.name_of(node).starts_with("bwd_");
    for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
      if (!halves_.in_backward[graph_.use(use).user]) return false;
    }
    return true;
  }

  // Whether the node belongs to forward even if only backward reads the node.
  bool is_forward_part(NodeId node) const {
    const bool is_symbol = is_size(graph_, node);
    bool is_part = false, is_forward = true;
    graph_.for_each_input(node, [&](NodeId input) {
      is_forward = is_forward && !halves_.in_backward[input];
      is_part = is_part || (is_symbol && backward_reads_sizes_of(graph_, phases_, input)) ||
                (is_projection(graph_, node) && may_hold_others(graph_, input));
    });
    for (const ControlDep& dep : control_of(graph_, node)) is_forward = is_forward && !halves_.in_backward[dep.node];
    return is_part && is_forward;
  }

  void count_outputs() {
    halves_.leaves = output_leaves(graph_);
    const std::vector<NodeId>& leaves = halves_.leaves;
    if (graph_.num_forward_outputs.has_value()) {
      const auto count = static_cast<size_t>(std::max<int64_t>(*graph_.num_forward_outputs, 0));
      halves_.num_forward_outputs = std::min(count, leaves.size());
      return;
    }
    size_t most = 0;
    while (most < leaves.size() && !is_gradient(most)) ++most;
    // A None before the first gradient may be a gradient: AOTAutograd returns a gradient or None
    // for each input.
    size_t least = most;
    while (least > 0 && !leaves[least - 1].is_valid()) --least;
    const size_t all = leaves.size() < halves_.primals.size() ? 0 : leaves.size() - halves_.primals.size();
    halves_.num_forward_outputs = all >= least && all <= most ? all : most == leaves.size() ? most : least;
  }

  bool is_gradient(size_t leaf) const {
    const NodeId node = halves_.leaves[leaf];
    return output_role(graph_, roles_, leaf) == OutputRole::kGradient || (node.is_valid() && halves_.in_backward[node]);
  }

  const Graph& graph_;
  const PhaseMap& phases_;
  const RoleMap& roles_;
  JointHalves halves_;
};

}  // namespace

bool is_projection(const Graph& graph, NodeId node) {
  if (!graph[node].is_call() || graph.op(node).view != ViewKind::kProjection) return false;
  const Arg* key = graph.arg(node, 1);
  return key != nullptr && (key->is(ArgKind::kInt) || key->is(ArgKind::kString));
}

bool may_hold_others(const Graph& graph, NodeId node) {
  const Value& value = graph.value(node);
  return has_elements(value) || (value.kind == ValueKind::kAbsent && graph[node].is_call());
}

bool holds_others(const Graph& graph, NodeId node) {
  if (has_elements(graph.value(node))) return true;
  if (!may_hold_others(graph, node)) return false;
  for (UseId use = graph.first_use(node); use.is_valid(); use = graph.use(use).next) {
    if (is_projection(graph, graph.use(use).user)) return true;
  }
  return false;
}

bool asks_for_sizes_alone(const Graph& graph, const PhaseMap& phases, NodeId node) {
  if (!graph[node].runs() || !phases.is_backward(node) || !is_size(graph, node)) return false;
  bool asks = false, is_forward = true;
  graph.for_each_input(node, [&](NodeId input) {
    is_forward = is_forward && !phases.is_backward(input);
    asks = asks || backward_reads_sizes_of(graph, phases, input);
  });
  return asks && is_forward;
}

OutputRole output_role(const Graph& graph, const RoleMap& roles, size_t leaf) {
  const OutputRole recorded = leaf < graph.outputs.size() ? graph.outputs[leaf].role : OutputRole::kUnspecified;
  return recorded == OutputRole::kUnspecified ? roles.outputs[leaf].role : recorded;
}

JointHalves joint_halves(const Graph& graph, const PhaseMap& phases, const RoleMap& roles) {
  return Halver(graph, phases, roles).run();
}

}  // namespace fxopt
