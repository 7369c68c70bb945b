#include "ir/step/unshard.h"

#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/step/infer_roles.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

bool is_wait(const Graph& graph, NodeId node) { return graph[node].is_call() && graph.op(node).has(Effect::kWaits); }

// Whether the op only moves the data of its operand or changes the dtype.
bool is_layout(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  return op.is_pure() && (op.compute == ComputeClass::kView || op.compute == ComputeClass::kDataMovement ||
                          view_of_call(graph, node) != ViewKind::kNone);
}

class GatherFinder {
 public:
  GatherFinder(const Graph& graph, UnshardMap& map) : graph_(graph), map_(map) {}

  UnshardContent content_of(NodeId node) {
    bool is_any = false, is_other = false, is_gathered = false;
    graph_.for_each_input(node, [&](NodeId input) {
      const ValueKind kind = graph_.value(input).kind;
      if (kind == ValueKind::kSymbolic || kind == ValueKind::kScalar) return;
      is_any = true;
      is_other = is_other || map_.content.get(input) == UnshardContent::kOther;
      is_gathered = is_gathered || map_.content.get(input) == UnshardContent::kGathered;
    });
    if (!is_any || is_other) return UnshardContent::kOther;
    if (is_all_gather(graph_, node)) {
      return graph_.op(node).has(Effect::kMutates) ? UnshardContent::kOther : UnshardContent::kGathered;
    }
    if (is_wait(graph_, node)) return is_gathered ? UnshardContent::kGathered : UnshardContent::kOther;
    if (!is_layout(graph_, node)) return UnshardContent::kOther;
    if (is_gathered && is_waited_for(node)) map_.is_past_wait[node] = true;
    return is_gathered ? UnshardContent::kGathered : UnshardContent::kShard;
  }

 private:
  // Whether an operand is the result of a wait, or depends on a wait.
  bool is_waited_for(NodeId node) const {
    bool found = false;
    graph_.for_each_input(
        node, [&](NodeId input) { found = found || map_.is_past_wait.get(input) || is_wait(graph_, input); });
    return found;
  }

  const Graph& graph_;
  UnshardMap& map_;
};

}  // namespace

bool is_all_gather(const Graph& graph, NodeId node) {
  return graph[node].is_call() && graph.op(node).has(Effect::kCollective) &&
         collective_kind(graph.op(node)) == CollectiveKind::kAllGather;
}

UnshardMap find_unshards(const Graph& graph, const std::vector<NodeId>& from,
                         const std::function<bool(NodeId)>& is_looked_at) {
  UnshardMap map;
  map.content = IdMap<NodeId, UnshardContent>(graph.num_ids(), UnshardContent::kOther);
  map.leads = map.is_past_wait = IdMap<NodeId, bool>(graph.num_ids(), false);
  for (const NodeId node : from) map.content[node] = UnshardContent::kShard;
  GatherFinder finder(graph, map);
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].is_call() || !is_looked_at(node)) continue;
    map.content[node] = finder.content_of(node);
    map.gathers += map.content[node] == UnshardContent::kGathered && is_all_gather(graph, node) ? 1 : 0;
  }
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    if (!graph[node].is_call() || map.content.get(node) == UnshardContent::kOther) continue;
    const bool is_source = map.content.get(node) == UnshardContent::kGathered && is_all_gather(graph, node);
    const bool is_on_way = map.content.get(node) == UnshardContent::kShard && map.leads.get(node);
    if (!is_source && !is_on_way) continue;
    graph.for_each_input(node, [&map](NodeId input) { map.leads[input] = true; });
  }
  return map;
}

std::vector<NodeId> parameters_of(const Graph& graph, const StorageMap& storages, bool or_saved) {
  std::vector<NodeId> found;
  bool is_recorded = false;
  for (const NodeId node : placeholders_of(graph)) {
    const InputRole role = recorded_role(graph, node);
    is_recorded = is_recorded || role != InputRole::kUnspecified;
    if (role == InputRole::kParameter || (or_saved && role == InputRole::kSavedValue)) found.push_back(node);
  }
  if (is_recorded) return found;
  for (const DerivedInput& input : infer_roles(graph, storages).inputs) {
    if (input.role == InputRole::kParameter) found.push_back(input.node);
  }
  return found;
}

}  // namespace fxopt
