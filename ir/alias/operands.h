#pragma once

#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"
#include "ir/alias/effect_map.h"
#include "ir/graph/graph.h"

namespace fxopt {

// The operands of calls that write in place.
//
// Some ops that write to an operand raise an error if their operands overlap
// (at::assert_no_overlap, MemoryOverlap.cpp). PyTorch compares tensor objects to detect an overlap.
// If x is not dense, `index_put_(x, i, x)` raises. If the second x is replaced by a view of all of
// x, the call does not raise. Therefore, before a pass replaces one node by another node, the pass
// must check whether a writing call would get the same operand twice.
//
// Built in O(nodes + edges).
class WrittenOperands {
 public:
  WrittenOperands(const Graph& graph, EffectMap& effects);

  // Whether a writing call has both `gone` and `kept` as operands. O(uses of `gone` and of the
  // results of in-place ops on `gone`).
  bool has_both(NodeId gone, NodeId kept) const;
  // Records that `kept` replaces `gone` from now on.
  // O(uses of `gone` and of the results of in-place ops on `gone`).
  void replace(NodeId gone, NodeId kept);

 private:
  static uint64_t key(NodeId call, NodeId operand) {
    return static_cast<uint64_t>(call.index()) << 32U | static_cast<uint64_t>(operand.index());
  }

  // Returns the node that created the tensor object that `node` returns. For an in-place op, this
  // is the node that created its argument. For any other node, this is `node`.
  NodeId tensor_of(NodeId node) const;
  bool is_given_with(NodeId node, NodeId tensor) const;
  // Adds `tensor` to the operands of every writing call that has `node` as an operand.
  void add_uses(NodeId node, NodeId tensor);

  struct Hash {
    size_t operator()(uint64_t key) const { return static_cast<size_t>(hash_combine(key >> 32U, key)); }
  };

  const Graph& graph_;
  HashSet<uint64_t, Hash> given_;                 // pairs of a writing call and a tensor
  IdMap<NodeId, NodeId> tensors_;                 // the tensor that each in-place op returns
  HashMap<NodeId, std::vector<NodeId>> results_;  // results of in-place ops, by tensor
};

}  // namespace fxopt
