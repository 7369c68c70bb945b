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
      return Effect::kOpaque;
  }
  const Effect effects = call_effects(graph, node);
  return graph.op(node).has_subgraphs ? effects | of_subgraphs(graph, node) : effects;
}

Effect EffectMap::of_subgraphs(const Graph& graph, NodeId node) {
  bool any = false;
  Effect effects = of_arguments(graph, graph[node].args, any) | of_arguments(graph, graph[node].kwargs, any);
  if (!any || has_effect(effects, Effect::kMutates)) effects = effects | Effect::kOpaque;
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
  if (!id.is_valid()) return Effect::kOpaque;
  if (known_[id.index()].state == State::kKnown) return known_[id.index()].effects;
  if (known_[id.index()].state == State::kOpen) return Effect::kOpaque;  // a graph that runs itself
  known_[id.index()].state = State::kOpen;
  Effect effects = Effect::kNone;
  const Graph& graph = module.graph(id);
  for (const NodeId node : graph.nodes()) effects = effects | of(graph, node);
  known_[id.index()] = {State::kKnown, effects};
  return effects;
}

}  // namespace fxopt
