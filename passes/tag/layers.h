#pragma once

#include "ir/graph/graph.h"
#include "ir/step/phases.h"
#include "ir/step/tag_rules.h"

namespace fxopt {

// The region or layer of each forward node, for policies that save values which cross from one
// layer to another.
//
// A node belongs to the region or layer of its region or module path (region_key). An input belongs
// to the layer of the forward calls that read it, if all that have one agree: the parameters of a
// layer. A call without a path belongs to the latest layer of its operands that have one by path or
// as inputs. If none has, it follows its last operand that was itself placed by its operands. A
// backward that autograd runs inside forward records no module path (torch.func.grad, AOTAutograd's
// joint graphs). Its calls thus belong to the layers whose activations and parameters they read,
// from the last layer to the first. A call that reads no layer belongs to none.
class Layers {
 public:
  // O(nodes + edges).
  Layers(const Graph& graph, const PhaseMap& phases);

  const RegionKey& of(NodeId node) const { return keys_[node]; }

  // Whether the result of `maker` leaves its layer by its use in `user`. Forward passes through
  // layers in the order of their numbers, a backward inside it in the reverse order. If a call with
  // a path reads the result of one without, the value enters the reader's layer, whatever the other
  // call read: a sum between two layers, a parameter made by an inner step of an optimizer.
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
