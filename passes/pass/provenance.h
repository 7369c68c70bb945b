#pragma once

#include <string_view>

#include "ir/graph/graph.h"

namespace fxopt {

// Records on `node` that it was made from `old`, or stands for it, by that pass. O(1).
void add_origin(Graph& graph, NodeId node, NodeId old, OriginKind kind, StringId pass);

// A view of `source` under these sizes before `before`, which runs as `like` does: phase, module, region. `source` lies row by row.
// O(rank).
NodeId insert_view(Graph& graph, NodeId source, DimsId sizes, NodeId before, NodeId like);

// Lets nodes stand for others, which go. How a pass that merges, folds or forwards applies its plan:
//
//   Replacer replacer(graph, "cse");
//   for (const Merge& merge : plan) replacer.replace(merge.gone, merge.kept);
//   replacer.finish();
class Replacer {
 public:
  Replacer(Graph& graph, std::string_view pass) : graph_(graph), pass_(pass), replaced_(graph.num_ids()) {}

  // Uses of `gone` read `kept`, `gone` is erased. `kept`, which may be any node before it, records the origin and the
  // origins `gone` had (of recomputed copies none: what one was copied from says nothing about the other). A tagged
  // `gone` goes to the ledger; whether `kept` takes over its tag is the pass's to decide. O(uses of `gone` + origins).
  void replace(NodeId gone, NodeId kept);

  // Of a node that is erased already: what waited for it waits for the other.
  void hand_over(NodeId gone, NodeId kept) {
    replaced_[gone] = kept;
    any_ = true;
  }

  // Control dependencies on nodes that went become dependencies on what stands for them. Once, at the end. O(nodes),
  // nothing when nothing was replaced.
  void finish();

 private:
  Graph& graph_;
  std::string_view pass_;
  IdMap<NodeId, NodeId> replaced_;
  bool any_ = false;
};

}  // namespace fxopt
