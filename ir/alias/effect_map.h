#pragma once

#include <optional>

#include "core/hash_table.h"
#include "ir/alias/subgraphs.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

// A cache of the effects of a module's subgraphs. A subgraph is a graph that a node runs, such as
// the body of a higher-order op. Each subgraph is examined on first use, and the effects of the
// subgraph are kept. The EffectMaps of several graphs of one module may share one SubgraphEffects.
// A change of a subgraph invalidates the kept effects. Passes do not change subgraphs.
//
// Subgraphs may be nested as deep as memory allows. The first query about a subgraph takes
// O(nodes + arguments), summed over all subgraphs that the query examines. Later queries take O(1).
class SubgraphEffects {
 public:
  explicit SubgraphEffects(const Module& module) : module_(&module) {}

  // Returns the combined effects of the graph's nodes. Returns kUndescribed if no graph has the
  // name, or if the graph calls itself.
  Effect of(StringId name);
  // Forgets all effects. Must be called after a subgraph has changed.
  void forget() { known_.clear(); }

 private:
  struct Visit;

  Visit open(GraphId id);
  Effect known(StringId name) const;

  const Module* module_;
  HashMap<GraphId, Effect> known_;  // kUndescribed while the graph is being examined
};

// Whether two calls of the operator may have different effects. The effects may depend on the
// call's arguments and on the graphs that the call runs.
inline bool effects_depend_on_call(const Op& op) {
  return op.has(Effect::kRandom) || op.has(Effect::kMutates) || op.operator_arg >= 0 || op.has_subgraphs;
}

// The effects that each node of a graph has apart from computing its outputs. The op table lists
// the effects of an operator. EffectMap refines these effects for each call:
// - A random op whose dropout probability is the constant 0 draws nothing.
// - A higher-order op has the effects of the subgraphs to which it refers and of the operator that
//   it runs.
// - A higher-order op has the effects kUndescribed if it names no subgraph, or if a subgraph writes
//   anything. It is then unknown which tensors of the caller are written.
// - Placeholders, get_attrs and the output have no effects.
// - call_method and call_module have the effects kUndescribed.
//
// Passes and StorageMap take the effects of a node only from this class.
//
// Each subgraph is examined once. The rest of a query takes O(1).
class EffectMap {
 public:
  explicit EffectMap(const Graph& graph);
  // Use this constructor to query several graphs of one module. Subgraphs are then examined only
  // once.
  EffectMap(const Graph& graph, SubgraphEffects& subgraphs);
  EffectMap(const EffectMap&) = delete;
  EffectMap& operator=(const EffectMap&) = delete;

  Effect of(NodeId node);
  bool has(NodeId node, Effect bit) { return has_effect(of(node), bit); }

 private:
  const Graph* graph_;
  SubgraphNames names_;
  std::optional<SubgraphEffects> own_;
  SubgraphEffects* subgraphs_;
};

}  // namespace fxopt
