#pragma once

#include <span>

#include "ir/alias/storages.h"
#include "ir/step/phases.h"

// Whether backward may compute a value of forward again, as far as memory decides. Whether the op can be repeated at all
// is why_unrepeatable() of tag_rules.h.

namespace fxopt {

// Refers to the graph and its maps, and is good until they change. Made in O(nodes + edges).
class RepeatRules {
 public:
  RepeatRules(const Graph& graph, const PhaseMap& phases, const StorageMap& storages);

  // What stands against a copy of `node` right before `consumer`:
  //   kWritten   what it computes with is written between the two, or has its sizes or strides changed; or, in a joint
  //              graph, is written by forward at all after it (see below); or what it makes is written in place, and
  //              the write would go to one of two tensors
  //   kReturned  of several tensors on its memory that the caller is handed, backward made one
  //   kNone      nothing
  // The order of a joint graph is not the one it runs in: a write to an input belongs to forward, wherever it stands,
  // and an input that the runtime writes (an output of role mutation) is written when forward ends.
  // O(tensors * log writes).
  TagRule obstacle(NodeId node, NodeId consumer) const;

  // What `node` makes is written in place after it. O(tensors).
  bool is_written_later(NodeId node) const;

 private:
  void find_returned(const Graph& graph, const PhaseMap& phases);
  void find_forward_writes(const Graph& graph, const PhaseMap& phases);

  const Graph* graph_;
  const StorageMap* storages_;
  // By alias class:
  IdMap<BufferId, uint32_t> returned_;  // how many tensors on it the caller is handed
  IdMap<BufferId, bool> returned_by_backward_;
  IdMap<BufferId, uint32_t> forward_writes_;  // of a joint graph: one more than the place of the last one
};

// The first of the nodes on the memory of an input to which the runtime gives a new value between forward and backward: what
// reads it after forward reads another value than before. Invalid ones among them are passed over. Invalid: none is.
// O(tensors).
NodeId find_written_by_runtime(const Graph& graph, const StorageMap& storages, std::span<const NodeId> nodes);

}  // namespace fxopt
