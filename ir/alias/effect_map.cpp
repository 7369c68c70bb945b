#include "ir/alias/effect_map.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/alias/effects.h"
#include "ir/graph/described_op.h"
#include "ir/graph/module.h"
#include "ir/values/call_args.h"

namespace fxopt {
namespace {

bool runs_subgraphs(const Graph& graph, NodeId node) { return graph[node].is_call() && graph.op(node).has_subgraphs; }

// Returns the effects of an operator that only the file describes, or kUndescribed if the file has
// no schema for it.
Effect described_effects(const Module& module, StringId target) {
  const auto record =
      std::ranges::find_if(module.op_schemas, [target](const OpSchemaRecord& each) { return each.target == target; });
  return record == module.op_schemas.end() ? kUndescribed : described_op(module, *record).effects;
}

// Returns the effects of a functionalized call, which writes clones of its arguments and returns
// them. A random operator becomes kOpaque, because only its arguments decide whether it draws.
Effect effects_on_clones(Effect effects) {
  if (has_effect(effects, Effect::kUnknownWrites)) return effects;
  if (has_effect(effects, Effect::kRandom)) effects = without(effects, Effect::kRandom) | Effect::kOpaque;
  return without(effects, Effect::kMutates);
}

// Returns the effects of the operator that a higher-order call takes as an argument and runs. Only
// the operator's name is known.
Effect effects_of_operator(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  const Arg* given = call_argument(graph, node, static_cast<size_t>(op.operator_arg));
  if (given == nullptr || !given->is(ArgKind::kOp)) return kUndescribed;
  const Op* inner = find_builtin_op(graph.module().text(given->as_string()));
  if (op.functionalizes) {
    return effects_on_clones(inner != nullptr ? inner->effects : described_effects(graph.module(), given->as_string()));
  }
  if (inner == nullptr) return kUndescribed;
  const Effect effects = without(inner->effects, Effect::kRandom);
  return has_effect(effects, Effect::kMutates) ? effects | Effect::kUnknownWrites : effects;
}

// `effects_of_graph(name)` returns the effects of a graph that the node runs.
template <class OfGraph>
Effect effects_of(const Graph& graph, const SubgraphNames& names, NodeId node, OfGraph effects_of_graph) {
  if (!graph[node].runs()) return Effect::kNone;
  if (graph[node].kind != NodeKind::kCallFunction) return kUndescribed;
  const Op& op = graph.op(node);
  Effect effects = op.effects;
  if (!effects_depend_on_call(op)) return effects;
  if (op.has(Effect::kRandom) && !is_random_call(graph, node)) effects = without(effects, Effect::kRandom);
  if (op.has(Effect::kMutates) && !is_writing_call(graph, node)) effects = without(effects, Effect::kMutates);
  if (op.operator_arg >= 0) effects = effects | effects_of_operator(graph, node);
  if (!op.has_subgraphs) return effects;
  bool any = false;
  Effect inner = Effect::kNone;
  names.for_each(graph, node, [&](StringId name) {
    any = true;
    inner = inner | effects_of_graph(name);
  });
  if (!any || has_effect(inner, Effect::kMutates | Effect::kUnknownWrites)) inner = inner | kUndescribed;
  return effects | inner;
}

}  // namespace

// A graph whose subgraphs are being examined.
struct SubgraphEffects::Visit {
  GraphId id;
  SubgraphNames names;
  std::vector<GraphId> runs;
  size_t next = 0;  // index in `runs`
};

SubgraphEffects::Visit SubgraphEffects::open(GraphId id) {
  const Graph& graph = module_->graph(id);
  Visit visit{id, SubgraphNames(graph), {}, 0};
  for (const NodeId node : graph.nodes()) {
    if (!runs_subgraphs(graph, node)) continue;
    visit.names.for_each(graph, node, [&](StringId name) {
      const GraphId run = module_->find_graph(name);
      if (run.is_valid()) visit.runs.push_back(run);
    });
  }
  known_[id] = kUndescribed;
  return visit;
}

Effect SubgraphEffects::known(StringId name) const {
  const auto found = known_.find(module_->find_graph(name));
  return found == known_.end() ? kUndescribed : found->second;
}

// Visits the subgraphs of each graph before the graph itself. Uses an explicit stack, because
// deeply nested graphs would overflow the call stack of a thread.
Effect SubgraphEffects::of(StringId name) {
  const GraphId root = module_->find_graph(name);
  if (!root.is_valid()) return kUndescribed;
  std::vector<Visit> path;
  if (!known_.contains(root)) path.push_back(open(root));
  while (!path.empty()) {
    Visit& visit = path.back();
    if (visit.next < visit.runs.size()) {
      const GraphId run = visit.runs[visit.next++];
      if (!known_.contains(run)) path.push_back(open(run));
      continue;
    }
    const Graph& graph = module_->graph(visit.id);
    Effect effects = Effect::kNone;
    for (const NodeId node : graph.nodes()) {
      effects = effects | effects_of(graph, visit.names, node, [this](StringId run) { return known(run); });
    }
    known_[visit.id] = effects;
    path.pop_back();
  }
  return known(name);
}

EffectMap::EffectMap(const Graph& graph)
    : graph_(&graph), names_(graph), own_(std::in_place, graph.module()), subgraphs_(&*own_) {}

EffectMap::EffectMap(const Graph& graph, SubgraphEffects& subgraphs)
    : graph_(&graph), names_(graph), subgraphs_(&subgraphs) {}

Effect EffectMap::of(NodeId node) {
  return effects_of(*graph_, names_, node, [this](StringId name) { return subgraphs_->of(name); });
}

}  // namespace fxopt
