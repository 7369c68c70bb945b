#pragma once

#include <span>

#include "ir/alias/storages.h"
#include "ir/step/phases.h"

// Whether backward may recompute a forward value, as far as memory decides. Whether the operator
// can be repeated is decided by why_unrepeatable() of tag_rules.h.

namespace fxopt {

// Refers to the graph and its maps, and is valid until they change. Built in O(nodes + edges).
class RepeatRules {
 public:
  RepeatRules(const Graph& graph, const PhaseMap& phases, const StorageMap& storages);

  // The obstacle to a copy of `node` right before `consumer`:
  //   kWritten   an operand's memory is written between the two, or its sizes or strides change;
  //              or, in a joint graph, forward writes that memory anywhere after `node` (see
  //              below); or the result is written in place, and the write would reach only one of
  //              two tensors
  //   kReturned  the caller receives several tensors on the result's memory, and backward made one
  //   kNone      no obstacle
  //
  // A joint graph is not executed in the order of its schedule. A write to an input belongs to
  // forward, wherever it is. An input that the runtime writes (an output of role mutation) is
  // written when forward ends. O(tensors * log writes).
  TagRule obstacle(NodeId node, NodeId consumer) const;

  // Whether the result of `node` is written in place after it. O(tensors).
  bool is_written_later(NodeId node) const;

 private:
  void find_returned(const Graph& graph, const PhaseMap& phases);
  void find_forward_writes(const Graph& graph, const PhaseMap& phases);

  const Graph* graph_;
  const StorageMap* storages_;
  // By alias class:
  IdMap<BufferId, uint32_t> returned_;  // the number of tensors on it that the caller receives
  IdMap<BufferId, bool> returned_by_backward_;
  IdMap<BufferId, uint32_t> forward_writes_;  // joint graphs: the position of the last one, plus 1
};

// The first of the nodes on the memory of an input that the runtime updates between forward and
// backward: a consumer after forward reads another value than one before. Invalid ids are skipped.
// Invalid if no node is found. O(tensors).
NodeId find_written_by_runtime(const Graph& graph, const StorageMap& storages, std::span<const NodeId> nodes);

}  // namespace fxopt
