#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/infer_roles.h"
#include "ir/step/phases.h"

// Which nodes of a joint graph belong to forward, and which to backward.

namespace fxopt {

// The two halves as PyTorch's partitioners cut them, whatever is recomputed. `in_backward` is set
// for calls and inputs:
//
//   calls    backward calls of PhaseMap, except calls that belong to forward wherever they are:
//            getitems of forward values, and sizes of forward tensors from which backward reads
//            nothing else. Attributes belong to neither half
//   inputs   tangents; and states (generator states, tokens, ...) that only backward reads
//   outputs  forward's come first: the recorded number, else those up to the first gradient
struct JointHalves {
  IdMap<NodeId, bool> in_backward;
  std::vector<NodeId> primals;     // inputs of forward
  std::vector<NodeId> arriving;    // inputs of backward: tangents, then states
  std::vector<NodeId> leaves;      // the output's leaves; invalid: not a node
  size_t num_forward_outputs = 0;  // the number of leaves that belong to forward
};

// Whether `node` takes one element of a value by a constant key: `value[1]`. O(1).
bool is_projection(const Graph& graph, NodeId node);
// Whether the node may hold several values: a container, or a call without a recorded value. O(1).
bool may_hold_others(const Graph& graph, NodeId node);
// Whether the node does hold several: a container, or a call without a recorded value whose
// elements are taken. O(users).
bool holds_others(const Graph& graph, NodeId node);
// Whether `node` is a backward call that asks forward tensors for sizes, and backward reads nothing
// else of one of these tensors. The call may run in forward, and nothing is kept or recomputed for
// it. O(users of its inputs).
bool asks_for_sizes_alone(const Graph& graph, const PhaseMap& phases, NodeId node);
// The role of a leaf of the output: as recorded, else as `roles` (infer_roles()) shows. O(1).
OutputRole output_role(const Graph& graph, const RoleMap& roles, size_t leaf);

// `phases`: resolve_phases(); `roles`: infer_roles(). O(nodes + edges).
JointHalves joint_halves(const Graph& graph, const PhaseMap& phases, const RoleMap& roles);

}  // namespace fxopt
