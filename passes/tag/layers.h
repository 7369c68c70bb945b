#pragma once

#include "ir/graph/graph.h"
#include "ir/step/phases.h"
#include "ir/step/tag_rules.h"

namespace fxopt {

// The checkpoint region or the layer of each forward node. Policies use it to save values that
// cross from one layer to another.
//
// The first matching rule determines the layer of a node. A checkpoint region counts as a layer.
// 1. A node in a checkpoint region with an id has its own layer: this region. Any other node with a
//    layer number in its module path also has its own layer: the layer with this number
//    (region_key()).
// 2. An input gets the layer that its readers in forward have by rule 1. If these layers differ,
//    the input has no layer. For example, a parameter that only layer 3 reads belongs to layer 3.
// 3. A forward call without its own layer gets the highest layer of its operands. This rule
//    considers only operands whose layer follows from rule 1 or 2.
// 4. If rule 3 finds no layer, the call gets the layer of an operand whose layer follows from rule
//    3 or 4. If several operands have a layer, the last operand in the schedule is used.
// 5. If no operand has a layer, the call has no layer.
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
  // Also returns true if two conditions hold, even if `maker` and `user` have the same layer:
  // - `user` has its own layer (rule 1 of the class).
  // - `maker` has no layer, or rule 3 or 4 derived the layer of `maker` from operands.
  //
  // One example of such a `maker` is a sum between two layers. Another example is a parameter that
  // an inner step of an optimizer computes.
  bool crosses(NodeId maker, NodeId user) const;

 private:
  RegionKey key_of_readers(NodeId input) const;
  RegionKey key_of_operands(NodeId call) const;

  const Graph& graph_;
  const PhaseMap& phases_;
  IdMap<NodeId, RegionKey> keys_;
  IdMap<NodeId, bool> is_derived_;  // whether rules 3 to 5 determined the node's layer
};

}  // namespace fxopt
