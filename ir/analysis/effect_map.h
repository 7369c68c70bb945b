#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

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

  Effect of(NodeId node);
  bool has(NodeId node, Effect bit) { return has_effect(of(node), bit); }

 private:
  enum class State : uint8_t { kUnknown, kOpen, kKnown };
  struct Known {
    State state = State::kUnknown;
    Effect effects = Effect::kNone;
  };

  Effect of(const Graph& graph, NodeId node);
  Effect of_operator(const Graph& graph, NodeId node);
  Effect of_subgraphs(const Graph& graph, NodeId node);
  Effect of_arguments(const Graph& graph, ArgRange range, bool& any);
  Effect of_graph(StringId name);
  StringId subgraph_at(const Graph& graph, StringId path) const;

  const Graph* graph_;
  IdMap<StringId, StringId> attributes_;  // of graph_: path to subgraph
  std::vector<Known> known_;              // by GraphId
};

}  // namespace fxopt
