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
//   calls    The backward calls of PhaseMap. Two kinds of calls belong to forward wherever they
//            are: a getitem of a forward value, and a size of a forward tensor if backward reads
//            only sizes of that tensor. Attributes do not belong to a half.
//   inputs   Tangents, and states that only backward reads (generator states, tokens, ...).
//   outputs  The outputs of forward come first. If the file does not record the number of forward
//            outputs, they are the outputs before the first gradient.
struct JointHalves {
  IdMap<NodeId, bool> in_backward;
  std::vector<NodeId> primals;     // the inputs of forward
  std::vector<NodeId> arriving;    // the inputs of backward: tangents, followed by states
  std::vector<NodeId> leaves;      // leaves of the output; invalid if not a node
  size_t num_forward_outputs = 0;  // the number of leaves that belong to forward
};

// Whether `node` takes one element of a value by a constant key, such as `value[1]`. O(1).
bool is_projection(const Graph& graph, NodeId node);
// Whether the node's value may contain several values. This is true for a container and for a call
// without a recorded value. O(1).
bool may_hold_others(const Graph& graph, NodeId node);
// Whether the node's value certainly contains several values. This is true for a container, and for
// a call without a recorded value if another node takes an element of the call's result. O(users).
bool holds_others(const Graph& graph, NodeId node);
// Whether `node` is a backward call that reads only sizes of forward tensors. For at least one of
// these tensors, backward must need only the sizes. The call may run in forward. No value is kept
// or recomputed for the call. O(users of its inputs).
bool asks_for_sizes_alone(const Graph& graph, const PhaseMap& phases, NodeId node);
// Returns the role of a leaf of the output. If no role is recorded, returns the role in `roles`
// (infer_roles()). O(1).
OutputRole output_role(const Graph& graph, const RoleMap& roles, size_t leaf);

// Returns the halves of a joint graph. `phases` is the result of resolve_phases(), and `roles` is
// the result of infer_roles(). O(nodes + edges).
JointHalves joint_halves(const Graph& graph, const PhaseMap& phases, const RoleMap& roles);

}  // namespace fxopt
