#pragma once

#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"
#include "ir/alias/effect_map.h"
#include "ir/graph/graph.h"

namespace fxopt {

// The operands of calls that write.
//
// Ops that write refuse operands that overlap, and detect this by tensor objects. If x is not
// dense, `index_put_(x, i, x)` raises, but a view of all of x in place of the second x does not
// (at::assert_no_overlap, MemoryOverlap.cpp). A pass that replaces one node by another therefore
// asks whether such a call would then have one operand twice.
//
// Built in O(nodes + edges).
class WrittenOperands {
 public:
  WrittenOperands(const Graph& graph, EffectMap& effects);

  // Whether a call that writes has both as operands.
  // O(uses of `gone` and of the results of in-place ops on it).
  bool has_both(NodeId gone, NodeId kept) const;
  // Records that `kept` replaces `gone` from now on.
  // O(uses of `gone` and of the results of in-place ops on it).
  void replace(NodeId gone, NodeId kept);

 private:
  static uint64_t key(NodeId call, NodeId operand) {
    return static_cast<uint64_t>(call.index()) << 32U | static_cast<uint64_t>(operand.index());
  }

  // The node whose tensor `node` is: an in-place op returns its argument.
  NodeId tensor_of(NodeId node) const;
  bool is_given_with(NodeId node, NodeId tensor) const;
  // Adds `tensor` to the operands of every writing call that has `node`.
  void add_uses(NodeId node, NodeId tensor);

  struct Hash {
    size_t operator()(uint64_t key) const { return static_cast<size_t>(hash_combine(key >> 32U, key)); }
  };

  const Graph& graph_;
  HashSet<uint64_t, Hash> given_;                 // writing call and tensor
  IdMap<NodeId, NodeId> tensors_;                 // by result of an in-place op
  HashMap<NodeId, std::vector<NodeId>> results_;  // results of in-place ops, by tensor
};

}  // namespace fxopt
