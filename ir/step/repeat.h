#pragma once

#include <span>

#include "ir/alias/storages.h"
#include "ir/step/phases.h"

// Decides whether in-place writes or shared memory would make it wrong to recompute a forward value
// in backward. why_unrepeatable() in tag_rules.h decides whether the operator can be repeated.

namespace fxopt {

// The rules for one graph. The object refers to the graph and its maps. The object is valid until
// the graph or a map changes. The constructor takes O(nodes + edges).
class RepeatRules {
 public:
  RepeatRules(const Graph& graph, const PhaseMap& phases, const StorageMap& storages);

  // Returns the reason why a copy of `node` right before `consumer` is not allowed:
  //
  //   kWritten   A write to memory would make the copy wrong:
  //              - Between `node` and `consumer`, an operand's memory is written, or the operand's
  //                sizes or strides change.
  //              - In a joint graph, forward writes an operand's memory anywhere after `node` (see
  //                below).
  //              - A node after `node` writes the memory of the result. After this write, the
  //                result and the copy may have different values.
  //   kReturned  The caller receives several tensors that share the result's memory, and backward
  //              made at least one of these tensors.
  //   kNone      The copy is allowed.
  //
  // A joint graph is not executed in the order of its schedule. A write to an input belongs to
  // forward, wherever the write is in the schedule. If an output of forward has the role mutation,
  // the runtime writes this output into an input when forward ends. O(tensors * log writes).
  TagRule obstacle(NodeId node, NodeId consumer) const;

  // Whether the result of `node` is written in place after `node`. O(tensors).
  bool is_written_later(NodeId node) const;

 private:
  void find_returned(const Graph& graph, const PhaseMap& phases);
  void find_forward_writes(const Graph& graph, const PhaseMap& phases);

  const Graph* graph_;
  const StorageMap* storages_;
  // These maps are indexed by StorageMap::alias_class(). `returned_` has the number of returned
  // tensors whose memory belongs to the class.
  IdMap<BufferId, uint32_t> returned_;
  IdMap<BufferId, bool> returned_by_backward_;
  // In joint graphs: 1 + the position of the last write in forward.
  IdMap<BufferId, uint32_t> forward_writes_;
};

// Returns the first of `nodes` whose memory belongs to an input that the runtime updates between
// forward and backward. A consumer after the update reads a different value than a consumer before
// the update. Invalid ids are skipped. The result is invalid if no such node is found. O(tensors).
NodeId find_written_by_runtime(const Graph& graph, const StorageMap& storages, std::span<const NodeId> nodes);

}  // namespace fxopt
