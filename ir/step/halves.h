#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/infer_roles.h"
#include "ir/step/phases.h"

// Decides which nodes of a joint graph belong to forward, and which to backward.

namespace fxopt {

// The two halves of a joint graph, split as PyTorch's partitioners split it. The halves do not
// depend on which values are recomputed. `in_backward` is true for each call and input that belongs
// to backward. The rules are:
//
//   calls:   A call belongs to backward if it is backward in PhaseMap. Exceptions: these two kinds
//            of calls belong to forward if they depend directly on no node of backward:
//            - a getitem that takes an element of a forward value by a constant key
//            - a size of a forward tensor, if backward reads only sizes of that tensor, and if
//              recompute did not make the call
//            Attributes (get_attr nodes) belong to neither half.
//   inputs:  The tangents belong to backward. States are placeholders for generator states, seeds,
//            tokens and similar values. A state belongs to backward if only backward reads the
//            state. A state that no node reads belongs to backward if its name begins with "bwd_".
//            All other inputs belong to forward.
//   outputs: The outputs of forward come first, and the gradients follow. The file may record the
//            number of forward outputs. If it does not, these steps find the first gradient:
//            1. Find the first output that is known to be a gradient. The outputs before this
//               output belong to forward. Exception: outputs directly before this output that are
//               not nodes, such as None, are undecided. If no gradient is known, outputs at the
//               end that are not nodes are undecided.
//            2. AOTAutograd returns one gradient or None for each input of forward. Compute the
//               expected index of the first gradient:
//                 max(0, number of outputs - number of forward inputs)
//            3. If an undecided output or the known gradient has the expected index, the gradients
//               begin at this index.
//            4. For any other expected index, the undecided outputs are gradients if a gradient is
//               known. If no gradient is known, the undecided outputs belong to forward.
struct JointHalves {
  IdMap<NodeId, bool> in_backward;
  std::vector<NodeId> primals;   // the inputs of forward
  std::vector<NodeId> arriving;  // the inputs of backward: first tangents, then states (see `inputs`)
  // All outputs of the graph, in order: the leaves of the output node's argument, which may be
  // nested. A leaf that is not a node has an invalid id.
  std::vector<NodeId> leaves;
  size_t num_forward_outputs = 0;  // number of forward outputs, which come first in `leaves`
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
// Whether the backward call `node` computes only a size. Forward can run such a call, so nothing
// needs to be saved or recomputed for the call. The result is true if these conditions are met:
// - `node` is a backward call. It is not a copy that recompute made.
// - The value of `node` is symbolic, such as a size, and the operator is pure.
// - No input of `node` is backward.
// - At least one input is a tensor from which backward reads only sizes or other symbolic values.
// O(users of the node's inputs).
bool asks_for_sizes_alone(const Graph& graph, const PhaseMap& phases, NodeId node);
// Returns the role of the output with the index `leaf` in JointHalves::leaves. This is the role
// that the file records for the output (Graph::outputs). If the file records no role, this is the
// inferred role, which `roles` (the result of infer_roles()) contains. O(1).
OutputRole output_role(const Graph& graph, const RoleMap& roles, size_t leaf);

// Returns the halves of a joint graph. `phases` is the result of resolve_phases(), and `roles` is
// the result of infer_roles(). O(nodes + edges).
JointHalves joint_halves(const Graph& graph, const PhaseMap& phases, const RoleMap& roles);

}  // namespace fxopt
