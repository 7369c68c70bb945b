#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

// What each node of a graph does beyond computing its outputs: the op table's answer, made precise by the call. A
// higher-order op has the effects of the subgraphs it names (opaque when it names none, and when one writes anything:
// which of the caller's tensors that reaches is not known), a random op whose probability is statically 0 draws
// nothing. Placeholders and get_attrs have none; call_method and call_module are opaque.
//
// Each subgraph is walked once; else O(1) per question.
class EffectMap {
 public:
  explicit EffectMap(const Graph& graph);

  Effect of(NodeId node);
  bool has(NodeId node, Effect bit) { return has_effect(of(node), bit); }
  // As Op::is_pure().
  bool is_pure(NodeId node) { return is_pure(of(node)); }
  static bool is_pure(Effect effects) { return without(effects, Effect::kHostSync | Effect::kNondeterministic) == 0; }
  // The bits of `effects` that are not in `allowed`.
  static uint16_t without(Effect effects, Effect allowed) {
    return static_cast<uint16_t>(static_cast<uint16_t>(effects) & ~static_cast<uint16_t>(allowed));
  }

 private:
  enum class State : uint8_t { kUnknown, kOpen, kKnown };
  struct Known {
    State state = State::kUnknown;
    Effect effects = Effect::kNone;
  };

  Effect of(const Graph& graph, NodeId node);
  Effect of_subgraphs(const Graph& graph, NodeId node);
  Effect of_arguments(const Graph& graph, ArgRange range, bool& any);
  Effect of_graph(StringId name);
  StringId subgraph_at(const Graph& graph, StringId path) const;

  const Graph* graph_;
  IdMap<StringId, StringId> attributes_;  // of graph_: path to subgraph
  std::vector<Known> known_;              // by GraphId
};

}  // namespace fxopt
