#pragma once

#include "ir/graph/graph.h"
#include "ir/step/phases.h"
#include "ir/step/tag_rules.h"

namespace fxopt {

// The region or layer of each forward node. Policies use it to save values that cross from one
// layer to another.
//
// The first of these rules that applies decides (see region_key() for regions and module paths):
// - A node with a region or a module path belongs to that region, or to the layer in that path.
// - Forward calls that read an input may have layers. If all these layers are the same layer, the
//   input belongs to this layer. So the parameters of a layer belong to that layer.
// - A call without a path may have operands that have a layer because of their path or because they
//   are inputs. The call belongs to the last of these layers.
// - Any other call without a path belongs to the layer of one of its operands. This is the last
//   operand that got its layer from its own operands.
// - If no operand of a call has a layer, the call does not belong to any layer.
//
// If autograd runs a backward inside forward (torch.func.grad, AOTAutograd's joint graphs), the
// calls of that backward have no module path. Therefore, these calls belong to the layers whose
// activations and parameters they read, from the last layer to the first.
class Layers {
 public:
  // O(nodes + edges).
  Layers(const Graph& graph, const PhaseMap& phases);

  const RegionKey& of(NodeId node) const { return keys_[node]; }

  // Whether the result of `maker` leaves the layer of `maker` if `user` reads the result. Forward
  // passes through the layers in the order of their numbers. A backward inside forward passes
  // through the layers in the reverse order.
  //
  // The result also enters the layer of `user` if `user` has a region or a path, and `maker` is a
  // call without a path. The layers of the operands of `maker` do not matter. Examples are a sum
  // between two layers, and a parameter that an inner step of an optimizer computes. This rule
  // includes a `maker` that does not belong to any layer.
  bool crosses(NodeId maker, NodeId user) const;

 private:
  RegionKey key_of_readers(NodeId input) const;
  RegionKey key_of_operands(NodeId call) const;

  const Graph& graph_;
  const PhaseMap& phases_;
  IdMap<NodeId, RegionKey> keys_;
  IdMap<NodeId, bool> is_derived_;  // whether the node's operands determined its layer
};

}  // namespace fxopt
