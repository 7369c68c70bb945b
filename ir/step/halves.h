#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/infer_roles.h"
#include "ir/step/phases.h"

// What of a joint graph is forward's and what is backward's.

namespace fxopt {

// The two halves as PyTorch's partitioners cut them, whatever is computed again. `in_backward` holds of calls and inputs:
//
//   calls     what PhaseMap says is backward, but what forward makes wherever it stands: getitems of forward values, and sizes
//             of forward tensors of which backward reads nothing else. Attributes are of neither
//   inputs    tangents; states (of a generator, tokens, ...) that backward alone reads
//   outputs   forward's come first: as many as the graph records; else those up to the first gradient
struct JointHalves {
  IdMap<NodeId, bool> in_backward;
  std::vector<NodeId> primals;     // inputs of forward
  std::vector<NodeId> arriving;    // inputs of backward: tangents, then states
  std::vector<NodeId> leaves;      // of the output; invalid: no node
  size_t num_forward_outputs = 0;  // of these
};

// Whether `node` takes a part of a value by a constant key: `value[1]`. O(1).
bool takes_part(const Graph& graph, NodeId node);
// Whether the node may hold several values: a container, or a call of which nothing is recorded. O(1).
bool may_hold_others(const Graph& graph, NodeId node);
// Whether it does: a container; one of which nothing is recorded, and of which parts are taken. O(users).
bool holds_others(const Graph& graph, NodeId node);
// Whether a call of backward asks forward tensors for sizes, of which backward reads nothing else, or calculates with such: so
// that it may run in forward, and nothing is kept or computed again for it. O(users of its inputs).
bool asks_for_sizes_alone(const Graph& graph, const PhaseMap& phases, NodeId node);
// What the leaf of the output is for: as recorded, else as `roles` (infer_roles()) shows. O(1).
OutputRole output_role(const Graph& graph, const RoleMap& roles, size_t leaf);

// `phases`: resolve_phases(); `roles`: infer_roles(). O(nodes + edges).
JointHalves joint_halves(const Graph& graph, const PhaseMap& phases, const RoleMap& roles);

}  // namespace fxopt
