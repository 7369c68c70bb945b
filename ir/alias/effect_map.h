#pragma once

#include <optional>

#include "core/hash_table.h"
#include "ir/alias/subgraphs.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

// The effects of the graphs that nodes of a module run, each looked into when it is first asked for and then kept. A
// fact of the module, which the EffectMaps of several of its graphs may share; good until one of the graphs that nodes
// run changes, which passes do not do.
//
// Graphs may be nested as deep as memory allows. O(nodes + arguments) of the graphs looked into, once; else O(1).
class SubgraphEffects {
 public:
  explicit SubgraphEffects(const Module& module) : module_(&module) {}

  // What the nodes of the graph do, all together. Undescribed: there is no graph of the name, or it runs itself.
  Effect of(StringId name);
  // The graphs have changed.
  void forget() { known_.clear(); }

 private:
  struct Visit;

  Visit open(GraphId id);
  Effect known(StringId name) const;

  const Module* module_;
  HashMap<GraphId, Effect> known_;  // undescribed while it is being looked into
};

// Whether two calls of the operator may have different effects: by their arguments, or by the graphs they run.
inline bool effects_depend_on_call(const Op& op) {
  return op.has(Effect::kRandom) || op.has(Effect::kMutates) || op.operator_arg >= 0 || op.has_subgraphs;
}

// What each node of a graph does beyond computing its outputs: the op table's answer, made precise by the call. A
// random op whose probability is statically 0 draws nothing. A higher-order op has the effects of the subgraphs it
// names and of an operator it is given to run; it is undescribed when it names no subgraph, and when one writes
// anything: which of the caller's tensors that reaches is not known. Placeholders and get_attrs have none; call_method
// and call_module are undescribed.
//
// The one place that answers: passes ask here, StorageMap asks here what a node may write.
//
// Each subgraph is walked once; else O(1) per question.
class EffectMap {
 public:
  explicit EffectMap(const Graph& graph);
  // For who asks about several graphs of one module, so that what they run is looked into once.
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
