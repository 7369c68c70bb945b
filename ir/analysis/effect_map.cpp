#include "ir/analysis/effect_map.h"

#include "ir/analysis/effects.h"
#include "ir/graph/module.h"

namespace fxopt {

EffectMap::EffectMap(const Graph& graph) : graph_(&graph), known_(graph.module().num_graphs()) {
  for (const Attribute& attribute : graph.attributes) {
    if (attribute.path.is_valid()) attributes_[attribute.path] = attribute.graph;
  }
}

Effect EffectMap::of(NodeId node) { return of(*graph_, node); }

Effect EffectMap::of(const Graph& graph, NodeId node) {
  switch (graph[node].kind) {
    case NodeKind::kPlaceholder:
    case NodeKind::kGetAttr:
    case NodeKind::kOutput:
      return Effect::kNone;
    case NodeKind::kCallFunction:
      break;
    default:
      return kUndescribed;
  }
  const Op& op = graph.op(node);
  Effect effects = op.effects;
  if (op.has(Effect::kRandom) && !is_random_call(graph, node)) effects = without(effects, Effect::kRandom);
  if (op.has(Effect::kMutates) && !is_writing_call(graph, node)) effects = without(effects, Effect::kMutates);
  if (op.operator_arg >= 0) effects = effects | of_operator(graph, node);
  if (op.has_subgraphs) effects = effects | of_subgraphs(graph, node);
  return effects;
}

// Of the operator the node is given to run: only its name is known here, not with what it is called.
Effect EffectMap::of_operator(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  const Arg* given = call_argument(graph, node, static_cast<size_t>(op.operator_arg));
  if (given == nullptr || !given->is(ArgKind::kOp)) return kUndescribed;
  const Op* inner = find_builtin_op(graph.module().text(given->as_string()));
  if (inner == nullptr) return kUndescribed;
  Effect effects = without(inner->effects, Effect::kRandom);
  if (!has_effect(effects, Effect::kMutates)) return effects;
  return op.functionalizes ? without(effects, Effect::kMutates) : effects | Effect::kUnknownWrites;
}

Effect EffectMap::of_subgraphs(const Graph& graph, NodeId node) {
  bool any = false;
  Effect effects = of_arguments(graph, graph[node].args, any) | of_arguments(graph, graph[node].kwargs, any);
  if (!any || has_effect(effects, Effect::kMutates | Effect::kUnknownWrites)) effects = effects | kUndescribed;
  return effects;
}

Effect EffectMap::of_arguments(const Graph& graph, ArgRange range, bool& any) {
  Effect effects = Effect::kNone;
  for (const Arg& arg : graph.pool().args(range)) {
    if (arg.is(ArgKind::kGraph)) {
      any = true;
      effects = effects | of_graph(arg.as_string());
    } else if (arg.is(ArgKind::kNode)) {
      const Node& input = graph[arg.as_node()];
      if (input.kind != NodeKind::kGetAttr || !input.target.is_valid()) continue;
      const StringId subgraph = subgraph_at(graph, graph.module().target(input.target).name);
      if (!subgraph.is_valid()) continue;
      any = true;
      effects = effects | of_graph(subgraph);
    } else if (arg.has_children()) {
      effects = effects | of_arguments(graph, arg.range(), any);
    }
  }
  return effects;
}

StringId EffectMap::subgraph_at(const Graph& graph, StringId path) const {
  if (&graph == graph_) return attributes_[path];
  for (const Attribute& attribute : graph.attributes) {
    if (attribute.path == path) return attribute.graph;
  }
  return StringId();
}

Effect EffectMap::of_graph(StringId name) {
  const Module& module = graph_->module();
  const GraphId id = module.find_graph(name);
  if (!id.is_valid()) return kUndescribed;
  if (known_[id.index()].state == State::kKnown) return known_[id.index()].effects;
  if (known_[id.index()].state == State::kOpen) return kUndescribed;  // a graph that runs itself
  known_[id.index()].state = State::kOpen;
  Effect effects = Effect::kNone;
  const Graph& graph = module.graph(id);
  for (const NodeId node : graph.nodes()) effects = effects | of(graph, node);
  known_[id.index()] = {State::kKnown, effects};
  return effects;
}

}  // namespace fxopt
