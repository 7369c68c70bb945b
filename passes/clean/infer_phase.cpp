#include "passes/clean/infer_phase.h"

#include <string>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/step/phases.h"
#include "passes/pass/refusal.h"

namespace fxopt {
namespace {

// The nearest node of PhaseMap::seeds that `node` depends on by values. Invalid if `node` depends
// on seeds only through memory.
NodeId seed_of(const Graph& graph, const PhaseMap& phases, NodeId node) {
  IdMap<NodeId, bool> is_seed(graph.num_ids(), false), seen(graph.num_ids(), false);
  for (const NodeId seed : phases.seeds) is_seed[seed] = true;
  std::vector<NodeId> pending{node};
  for (size_t i = 0; i < pending.size(); ++i) {
    if (is_seed.get(pending[i])) return pending[i];
    graph.for_each_input(pending[i], [&](NodeId input) {
      if (!seen.get(input)) pending.push_back(input);
      seen[input] = true;
    });
  }
  return NodeId();
}

Error conflict_error(const Graph& graph, const PhaseMap& phases) {
  const NodeId node = phases.conflicts.front();
  const NodeId seed = seed_of(graph, phases, node);
  std::string message = quoted(graph, node) + " is marked " + std::string(name_of(graph[node].phase)) +
                        " but depends on " +
                        (seed.is_valid() ? "tangent " + quoted(graph, seed) : "a tangent through memory");
  if (phases.conflicts.size() > 1) message += ", as do " + std::to_string(phases.conflicts.size() - 1) + " more";
  return refused(
      graph, node, std::move(message),
      "remove the phase of the node. If the placeholder is not a tangent, remove the role of the placeholder instead",
      ErrorCode::kPhaseConflict);
}

}  // namespace

Result<PassResult> infer_phase(Graph& graph, const InferPhaseOptions&, PassContext& context) {
  PassResult result;
  const PhaseMap& phases = context.facts.of(graph).phases();
  if (!phases.conflicts.empty() && is_joint(graph)) return conflict_error(graph, phases);
  if (phases.has_markers) {
    for (const NodeId node : graph.nodes()) result.note("marked", graph[node].phase != Phase::kUnspecified ? 1 : 0);
    result.count("corrected", static_cast<int64_t>(correct_phases(graph, phases)));
    return result;
  }
  if (!may_hold_backward(graph)) return result;
  if (phases.seeds.empty()) {
    if (graph.kind != GraphKind::kUnspecified && graph.output().is_valid()) {
      result.remark(graph, graph.output(), "no-gradient-seed",
                    "nothing is inferred: no output depends on the gradient of a loss");
    }
    return result;
  }
  mark_phases(graph, phases);
  for (const NodeId node : graph.nodes()) {
    if (graph[node].kind != NodeKind::kOutput) result.count(phases.is_backward(node) ? "backward" : "forward");
  }
  return result;
}

}  // namespace fxopt
