#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/infer_roles.h"
#include "ir/step/phases.h"

// Decides which nodes of a joint graph belong to forward, and which to backward.

namespace fxopt {

// The two halves of a joint graph, split as PyTorch's partitioners split it. The halves do not
// depend on which values are recomputed. `in_backward` states for each call and input whether it
// belongs to backward. The rules are:
//
//   calls    Backward has the calls that are backward in PhaseMap. Two kinds of calls always belong
//            to forward. The first kind is a getitem of a forward value. The second kind is a size
//            of a forward tensor, if backward reads only sizes of that tensor. Attributes (get_attr
//            nodes) belong to neither half.
//   inputs   Backward has the tangents, and the states that only backward reads. States are
//            placeholders for generator states, seeds, tokens and similar values.
//   outputs  The outputs of forward come first. If the file does not record the number of forward
//            outputs, they are the outputs before the first gradient.
struct JointHalves {
  IdMap<NodeId, bool> in_backward;
  std::vector<NodeId> primals;   // the inputs of forward
  std::vector<NodeId> arriving;  // the inputs of backward: first tangents, then states (see `inputs`)
  // The leaves of the graph's output. A leaf that is not a node has an invalid id.
  std::vector<NodeId> leaves;
  size_t num_forward_outputs = 0;  // the number of leaves that belong to forward
};

// Whether `node` takes one element of a value by a constant key, such as `value[1]`. O(1).
bool is_projection(const Graph& graph, NodeId node);
// Whether the node's value may contain several values. This is true for a tuple, list or dict. It
// is also true for a call whose result is not recorded, because the result may be a tuple. O(1).
bool may_hold_others(const Graph& graph, NodeId node);
// Whether the node's value certainly contains several values. This is true for a tuple, list or
// dict. It is also true for a call whose result is not recorded, if another node takes an element
// of this result. O(users).
bool holds_others(const Graph& graph, NodeId node);
// Whether `node` is a backward call that computes a size and has only forward values as inputs, and
// backward uses at least one of these inputs only to read sizes. Forward can run such a call, so
// nothing needs to be saved or recomputed for it. O(users of the node's inputs).
bool asks_for_sizes_alone(const Graph& graph, const PhaseMap& phases, NodeId node);
// Returns the role of a leaf of the output. If no role is recorded, returns the role in `roles`
// (infer_roles()). O(1).
OutputRole output_role(const Graph& graph, const RoleMap& roles, size_t leaf);

// Returns the halves of a joint graph. `phases` is the result of resolve_phases(), and `roles` is
// the result of infer_roles(). O(nodes + edges).
JointHalves joint_halves(const Graph& graph, const PhaseMap& phases, const RoleMap& roles);

}  // namespace fxopt
