#pragma once

#include "ir/graph/graph.h"
#include "ir/step/phases.h"
#include "ir/step/tag_rules.h"

namespace fxopt {

// The region or layer of each forward node, for policies that save what crosses from one to another.
//
// A node has that of its region or module path (region_key). An input has that of the forward calls which read it, where
// all that have one agree: the parameters of a layer. A call without either has the latest of those that its operands
// have so; where none has, that of its last operand which was itself placed by its operands. So a backward which autograd
// runs inside forward, and which records no module path (torch.func.grad, AOTAutograd's joint graphs), falls into the
// layers whose activations and parameters it reads, from the last to the first. Of a call that reads no layer: none.
class Layers {
 public:
  // O(nodes + edges).
  Layers(const Graph& graph, const PhaseMap& phases);

  const RegionKey& of(NodeId node) const { return keys_[node]; }

  // Whether what `maker` gives leaves its layer where `user` reads it. Forward passes through layers in the order of their
  // numbers, a backward inside it in the reverse order. What a layer's own call reads of a call without a path enters the
  // layer, whatever that call read: a sum between two layers, a parameter that an inner step of an optimizer has made.
  bool crosses(NodeId maker, NodeId user) const;

 private:
  RegionKey key_of_readers(NodeId input) const;
  RegionKey key_of_operands(NodeId call) const;

  const Graph& graph_;
  const PhaseMap& phases_;
  IdMap<NodeId, RegionKey> keys_;
  IdMap<NodeId, bool> is_derived_;  // from operands
};

}  // namespace fxopt
