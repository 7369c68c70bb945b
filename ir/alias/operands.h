#pragma once

#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"
#include "ir/alias/effect_map.h"
#include "ir/graph/graph.h"

namespace fxopt {

// Which nodes are given to one call that writes.
//
// Ops that write refuse operands that overlap, and tell by tensor objects: `index_put_(x, i, x)` raises where a view of
// all of x in the place of the second x does not, when x is not dense (at::assert_no_overlap, MemoryOverlap.cpp). So a
// pass that lets one node stand for another asks whether such a call would then be given one of them twice.
//
// Built in O(nodes + edges).
class WrittenOperands {
 public:
  WrittenOperands(const Graph& graph, EffectMap& effects);

  // Whether a call that writes is given both. O(uses of `gone` and of what in-place ops make of it).
  bool has_both(NodeId gone, NodeId kept) const;
  // Notes that `kept` stands for `gone` from here on. O(uses of `gone` and of what in-place ops make of it).
  void replace(NodeId gone, NodeId kept);

 private:
  static uint64_t key(NodeId call, NodeId operand) {
    return static_cast<uint64_t>(call.index()) << 32U | static_cast<uint64_t>(operand.index());
  }

  // The node whose tensor it is: an in-place op hands back its argument.
  NodeId tensor_of(NodeId node) const;
  bool is_given_with(NodeId node, NodeId tensor) const;
  // The calls that write and are given `node` are given `tensor`.
  void add_uses(NodeId node, NodeId tensor);

  struct Hash {
    size_t operator()(uint64_t key) const { return static_cast<size_t>(hash_combine(key >> 32U, key)); }
  };

  const Graph& graph_;
  HashSet<uint64_t, Hash> given_;                 // call that writes and tensor
  IdMap<NodeId, NodeId> tensors_;                 // of results of in-place ops
  HashMap<NodeId, std::vector<NodeId>> results_;  // of these, by tensor
};

}  // namespace fxopt
