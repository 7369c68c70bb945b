#pragma once

#include <optional>

#include "core/hash_table.h"
#include "ir/alias/subgraphs.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

// The effects of the graphs that a module's nodes run. Each graph is examined on first use, and its
// effects are kept. The EffectMaps of several graphs of the module may share one object. Valid
// until a graph that nodes run changes, which passes do not do.
//
// Graphs may be nested as deep as memory allows. O(nodes + arguments) of the examined graphs, once;
// else O(1).
class SubgraphEffects {
 public:
  explicit SubgraphEffects(const Module& module) : module_(&module) {}

  // The combined effects of the graph's nodes. Undescribed if no graph has the name, or if it runs
  // itself.
  Effect of(StringId name);
  // Call after the graphs have changed.
  void forget() { known_.clear(); }

 private:
  struct Visit;

  Visit open(GraphId id);
  Effect known(StringId name) const;

  const Module* module_;
  HashMap<GraphId, Effect> known_;  // undescribed while it is being examined
};

// Whether two calls of the operator may differ in effects, by their arguments or the graphs they
// run.
inline bool effects_depend_on_call(const Op& op) {
  return op.has(Effect::kRandom) || op.has(Effect::kMutates) || op.operator_arg >= 0 || op.has_subgraphs;
}

// The effects of each node of a graph beyond computing its outputs: those of the op table, refined
// by the call. A random op whose probability is statically 0 draws nothing. A higher-order op has
// the effects of the subgraphs it names and of the operator it is given to run. It is undescribed
// if it names no subgraph, or if a subgraph writes anything, because it is unknown which of the
// caller's tensors the write reaches. Placeholders, get_attrs and the output have no effects.
// call_method and call_module are undescribed.
//
// Passes and StorageMap take the effects of a node from here only.
//
// Walks each subgraph once; else O(1) for each query.
class EffectMap {
 public:
  explicit EffectMap(const Graph& graph);
  // For callers that query several graphs of one module: subgraphs are examined once.
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
