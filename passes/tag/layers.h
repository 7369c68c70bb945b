#pragma once

#include "ir/graph/graph.h"
#include "ir/step/phases.h"
#include "ir/step/tag_rules.h"

namespace fxopt {

// The checkpoint region or the layer of each forward node. Policies use it to save values that
// cross from one layer to another.
//
// The first of these rules that applies decides (see region_key() for regions and module paths):
// - A node with a region or a module path belongs to that region, or to the layer in that path.
// - Forward calls that read an input may have layers. If all these layers are the same layer, the
//   input belongs to this layer. So the parameters of a layer belong to that layer.
// - A call without a path may have operands that have a layer and are either inputs or nodes with a
//   path. The call belongs to the layer with the highest number among these operands' layers.
// - If all operands with a layer are themselves calls without a path, the operand that is latest in
//   the schedule decides. The call belongs to the layer of this operand.
// - If no operand of a call has a layer, the call does not belong to any layer.
//
// If autograd runs a backward inside forward (torch.func.grad, AOTAutograd's joint graphs), the
// calls of that backward have no module path. Therefore, the activations and parameters that these
// calls read determine the layers of the calls. This kind of backward visits the layers in
// descending order.
class Layers {
 public:
  // O(nodes + edges).
  Layers(const Graph& graph, const PhaseMap& phases);

  const RegionKey& of(NodeId node) const { return keys_[node]; }

  // Whether the result of `maker` leaves the layer of `maker` if `user` reads the result. `user`
  // may be in a later layer or in an earlier layer: forward visits the layers in ascending order,
  // and a backward inside forward visits the layers in descending order.
  //
  // Also returns true if `user` has a region or a layer number in its module path, and `maker` has
  // neither. The layers of the operands of `maker` do not matter, and `maker` need not belong to a
  // layer. Examples of such a `maker` are a sum between two layers, and a parameter that an inner
  // step of an optimizer computes.
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
