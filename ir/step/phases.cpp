#include "ir/step/phases.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/alias/effects.h"
#include "ir/alias/reach.h"
#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

Phase default_phase(const Graph& graph) {
  return graph.kind == GraphKind::kBackward    ? Phase::kBackward
         : graph.kind == GraphKind::kOptimizer ? Phase::kOptimizer
                                               : Phase::kForward;
}

// Storages of the graph, computed on first use.
class OwnStorages {
 public:
  explicit OwnStorages(const Graph& graph) : graph_(graph) {}
  const StorageMap& operator()() {
    if (!storages_.has_value()) storages_.emplace(graph_);
    return *storages_;
  }

 private:
  const Graph& graph_;
  std::optional<StorageMap> storages_;
};

bool is_marked_forward(const Node& node) {
  constexpr uint32_t kForwardMarkers = marker_bit(PhaseMarker::kIsForward) | marker_bit(PhaseMarker::kMustBeInForward) |
                                       marker_bit(PhaseMarker::kCustomPhaseForward) |
                                       marker_bit(PhaseMarker::kApForward);
  return node.phase == Phase::kForward || node.phase == Phase::kLoss || (node.phase_markers & kForwardMarkers) != 0;
}

// In joint graphs, makes unmarked calls after the last forward mark backward. Calls that write, and
// calls that a forward output needs, stay forward.
void find_made_for_backward(const Graph& graph, PhaseMap& map) {
  const auto nodes = graph.nodes();
  const auto is_unmarked = [&graph](NodeId node) { return graph[node].is_call() && has_no_phase_mark(graph[node]); };
  const bool is_recorded = std::ranges::any_of(nodes, [&graph](NodeId node) { return is_marked_forward(graph[node]); });
  if (!is_recorded || !graph.num_forward_outputs.has_value()) return;
  IdMap<NodeId, bool> is_needed(graph.num_ids(), false);
  const std::vector<NodeId> leaves = output_leaves(graph);
  for (size_t i = 0; i < leaves.size() && static_cast<int64_t>(i) < *graph.num_forward_outputs; ++i) {
    if (leaves[i].is_valid()) is_needed[leaves[i]] = true;
  }
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    if (is_marked_forward(graph[node])) break;
    if (is_needed.get(node)) graph.for_each_input(node, [&](NodeId input) { is_needed[input] = true; });
    const bool writes = has_effect(graph.op(node).effects, Effect::kMutates | Effect::kUnknownWrites);
    if (is_unmarked(node) && !writes && !is_needed.get(node)) map.phase[node] = Phase::kBackward;
  }
  for (const NodeId node : nodes) {
    const NodeId whole = is_unmarked(node) ? whole_of(graph, node) : NodeId();
    if (whole.is_valid() && map.is_backward(whole)) map.phase[node] = Phase::kBackward;
  }
}

// Whether a backward node is an output that the file records as an output of forward.
bool gives_backward(const Graph& graph, const PhaseMap& map) {
  const std::vector<NodeId> leaves = output_leaves(graph);
  for (size_t i = 0; i < leaves.size(); ++i) {
    const OutputRole role = i < graph.outputs.size() ? graph.outputs[i].role : OutputRole::kUnspecified;
    const bool is_recorded = role == OutputRole::kLoss || role == OutputRole::kUser ||
                             static_cast<int64_t>(i) < graph.num_forward_outputs.value_or(0);
    if (is_recorded && leaves[i].is_valid() && map.is_backward(leaves[i])) return true;
  }
  return false;
}

// Whether marks may contradict dependencies, so that the dependencies must be analyzed. This is
// possible if a forward output is backward, if a node that is not backward has a backward operand,
// or if a backward node writes memory that other nodes may read. It is also possible in a graph of
// a whole step with calls marked forward, because these calls may compute gradients.
bool may_contradict(const Graph& graph, const PhaseMap& map) {
  const bool is_whole_step = !is_joint(graph) && holds_backward(graph, map);
  return gives_backward(graph, map) || std::ranges::any_of(graph.nodes(), [&](NodeId node) {
           if (graph[node].kind == NodeKind::kOutput) return false;
           if (map.is_backward(node)) {
             return has_effect(graph.op(node).effects, Effect::kMutates | Effect::kUnknownWrites);
           }
           if (is_whole_step && graph[node].is_call() && is_marked_forward(graph[node])) return true;
           bool found = false;
           graph.for_each_input(
               node, [&](NodeId input) { found = found || (map.is_backward(input) && graph[input].runs()); });
           return found;
         });
}

// Overrules backward marks of nodes that a forward output needs. Autograd inside forward causes
// such marks.
void overrule_marks(const Graph& graph, const StorageMap& storages, PhaseMap& map) {
  const std::optional<GradientReach> gradients = reach_of_gradients(graph, storages);
  if (!gradients.has_value()) return;
  const IdMap<NodeId, bool> needed = reach_back(graph, storages, gradients->forward_outputs);
  for (const NodeId node : graph.nodes()) {
    if (graph[node].kind == NodeKind::kOutput) continue;
    const NodeId whole = has_no_phase_mark(graph[node]) ? whole_of(graph, node) : NodeId();
    if (gradients->depends.get(node) != 0) {
      const bool is_conflict = !is_joint(graph) && graph[node].is_call() && is_marked_forward(graph[node]);
      if (is_conflict) map.conflicts.push_back(node);
    } else if (whole.is_valid()) {
      map.phase[node] = map.phase.get(whole);
    } else if (map.is_backward(node) && needed.get(node)) {
      map.phase[node] = Phase::kForward;
      if (graph[node].is_call()) map.overruled.push_back(node);
    }
  }
}

// Makes unmarked nodes backward if they depend on backward. For example, gradient sums that
// autograd did not create have no mark.
void follow_backward(const Graph& graph, const StorageMap& storages, PhaseMap& map) {
  std::vector<ReachStart> starts;
  for (const NodeId node : graph.nodes()) {
    if (map.is_backward(node)) starts.push_back({node, 1});
  }
  const IdMap<NodeId, uint64_t> depends = reach_forward(graph, storages, starts).masks;
  for (const NodeId node : graph.nodes()) {
    const bool is_open = graph[node].is_call() && has_no_phase_mark(graph[node]) && map.phase[node] == Phase::kForward;
    if (is_open && depends.get(node) != 0) map.phase[node] = Phase::kBackward;
  }
}

}  // namespace

PhaseMap analyze_phases(const Graph& graph, const StorageSource& storages) {
  PhaseMap map;
  const Phase unmarked = default_phase(graph);
  map.phase = IdMap<NodeId, Phase>(graph.num_ids(), unmarked);
  if (graph.kind != GraphKind::kBackward) {
    for (const NodeId node : graph.nodes()) {
      if (is_tangent(graph, node)) map.seeds.push_back(node);
    }
  }
  std::optional<Reach> closure;
  if (!map.seeds.empty()) {
    std::vector<ReachStart> starts;
    for (const NodeId seed : map.seeds) starts.push_back({seed, 1});
    closure = reach_forward(graph, storages(), starts);
  }
  for (const NodeId node : graph.nodes()) {
    const Phase mark = graph[node].phase;
    const bool inside = closure.has_value() && closure->masks.get(node) != 0;
    if (mark != Phase::kUnspecified || graph[node].phase_markers != 0) map.has_markers = true;
    if (graph[node].kind == NodeKind::kOutput) continue;
    if (mark != Phase::kUnspecified) {
      map.phase[node] = mark;
      if (inside && (mark == Phase::kForward || mark == Phase::kLoss)) map.conflicts.push_back(node);
    } else if (inside) {
      map.phase[node] = Phase::kBackward;
    } else if (const NodeId parent = whole_of(graph, node); parent.is_valid()) {
      map.phase[node] = map.phase.get(parent);
    }
  }
  if (!map.seeds.empty() && map.has_markers) find_made_for_backward(graph, map);
  return map;
}

PhaseMap analyze_phases(const Graph& graph) {
  OwnStorages own(graph);
  return analyze_phases(graph, [&own]() -> const StorageMap& { return own(); });
}

bool is_joint(const Graph& graph) {
  if (graph.kind != GraphKind::kUnspecified) return graph.kind == GraphKind::kJoint;
  return std::ranges::any_of(graph.nodes(), [&graph](NodeId node) { return is_tangent(graph, node); });
}

std::vector<NodeId> inputs_written_by_runtime(const Graph& graph) {
  std::vector<NodeId> inputs;
  size_t count = graph.outputs.size();
  if (graph.num_forward_outputs.has_value() && *graph.num_forward_outputs >= 0) {
    count = std::min(count, static_cast<size_t>(*graph.num_forward_outputs));
  }
  std::map<StringId, NodeId> named;  // by name in the model, filled on first use
  for (size_t i = 0; i < count; ++i) {
    const OutputSpec& output = graph.outputs[i];
    if (output.role != OutputRole::kMutation) continue;
    NodeId input = output.of.is_valid() ? graph.find(output.of) : NodeId();
    if (!input.is_valid() && output.fqn.is_valid() && named.empty()) {
      for (const NodeId node : graph.nodes()) {
        const InputSpec* spec = recorded_input(graph, node);
        if (spec != nullptr && spec->fqn.is_valid()) named.try_emplace(spec->fqn, node);
      }
    }
    if (const auto found = named.find(output.fqn); !input.is_valid() && found != named.end()) input = found->second;
    if (input.is_valid()) inputs.push_back(input);
  }
  return inputs;
}

bool may_hold_backward(const Graph& graph) {
  return graph.kind == GraphKind::kUnspecified || graph.kind == GraphKind::kJoint ||
         graph.kind == GraphKind::kForwardLossBackward;
}

PhaseMap resolve_phases(const Graph& graph) {
  OwnStorages own(graph);
  return resolve_phases(graph, [&own]() -> const StorageMap& { return own(); });
}

PhaseMap resolve_phases(const Graph& graph, const StorageMap& storages) {
  return resolve_phases(graph, [&storages]() -> const StorageMap& { return storages; });
}

PhaseMap resolve_phases(const Graph& graph, const StorageSource& storages) {
  PhaseMap map = analyze_phases(graph, storages);
  if (!may_hold_backward(graph)) return map;
  if (!map.has_markers) return infer_phases(graph, storages());
  if (!may_contradict(graph, map)) return map;
  overrule_marks(graph, storages(), map);
  follow_backward(graph, storages(), map);
  return map;
}

bool has_no_phase_mark(const Node& node) { return node.phase == Phase::kUnspecified && node.phase_markers == 0; }

size_t mark_rest_of_forward(Graph& graph, const PhaseMap& phases) {
  std::vector<NodeId> rest;
  NodeId node = graph.last();
  for (; node.is_valid() && !is_marked_forward(graph[node]); node = graph.prev(node)) {
    const bool is_unmarked = graph[node].is_call() && has_no_phase_mark(graph[node]);
    if (is_unmarked && !phases.is_backward(node)) rest.push_back(node);
  }
  if (!node.is_valid()) return 0;  // no node is marked
  for (const NodeId unmarked : rest) {
    graph[unmarked].phase = Phase::kForward;
    graph[unmarked].phase_markers = marker_bit(PhaseMarker::kIsForward);
  }
  return rest.size();
}

size_t mark_phases(Graph& graph, const PhaseMap& phases) {
  size_t marked = 0;
  for (const NodeId node : graph.nodes()) {
    if (graph[node].kind == NodeKind::kOutput) continue;
    graph[node].phase = phases.phase.get(node);
    graph[node].phase_markers |= marker_bit(PhaseMarker::kInferred);
    ++marked;
  }
  return marked;
}

size_t correct_phases(Graph& graph, const PhaseMap& phases) {
  size_t corrected = 0;
  IdMap<NodeId, bool> is_overruled(graph.num_ids(), false);
  for (const NodeId node : phases.overruled) is_overruled[node] = true;
  for (const NodeId node : graph.nodes()) {
    const bool is_left_out = graph[node].is_call() && has_no_phase_mark(graph[node]) && phases.is_backward(node) &&
                             may_hold_backward(graph) && !is_joint(graph);
    if (!is_left_out && !is_overruled[node]) continue;
    graph[node].phase = phases.phase.get(node);
    ++corrected;
  }
  return corrected;
}

bool holds_backward(const Graph& graph, const PhaseMap& phases) {
  return std::ranges::any_of(graph.nodes(), [&phases](NodeId node) { return phases.is_backward(node); });
}

}  // namespace fxopt
