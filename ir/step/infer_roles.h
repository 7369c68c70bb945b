#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class StorageMap;

// The inferred role of a placeholder. kUnspecified means that no role can be inferred.
struct DerivedInput {
  NodeId node;
  InputRole role = InputRole::kUnspecified;
  bool mutated = false;  // whether a node writes the input's storage
};

// The inferred role of one leaf of the output.
struct DerivedOutput {
  NodeId node;  // invalid if the leaf is None or not a node
  OutputRole role = OutputRole::kUnspecified;
  // The placeholder whose gradient or new value the leaf is. Invalid if no placeholder can be
  // inferred.
  NodeId of;
};

struct RoleMap {
  std::vector<DerivedInput> inputs;    // all placeholders, in schedule order
  std::vector<DerivedOutput> outputs;  // all leaves of the output node's argument
};

// Infers the roles of placeholders and outputs from values, order and dependencies only. Names and
// recorded roles are ignored, with one exception: infer_phases() uses recorded roles to find the
// gradient's seed.
//
//   symbol        A symbolic value.
//   tangent       In a joint graph, one of the last k placeholders. The outputs must be m forward
//                 outputs, followed by one gradient or None for each other placeholder. The
//                 gradients have the order and the shapes of these placeholders. The k tangents
//                 have the shapes of forward outputs, in the same order. No forward output depends
//                 on a tangent, every gradient depends on a tangent, and no other k fits. A
//                 component of a tensor subclass that is not a tensor is returned in place of its
//                 gradient.
//   gradient      An output that depends on a tangent or on the seed. In a joint graph, the place
//                 of the output determines the placeholder. In other graphs, gradients are matched
//                 with the floating-point placeholders in order and by equal shapes. If some
//                 placeholders are recorded to require gradients, only these are used. A match is
//                 accepted if the leftmost and the rightmost assignment are equal.
//   parameter     A placeholder whose gradient is an output of the graph. An input whose gradient
//                 the caller requests cannot be distinguished from a parameter.
//   loss          The value with a single element after which the seed is modelled. If there is
//                 only one tangent, the value with a single element that has the tangent's shape.
//   mutation      An output on the storage of a placeholder that some node writes.
//   seed, offset  A placeholder that random operators read only as the argument named `seed` or
//                 `offset`.
//   rng state     A placeholder that operators read only as the state of a random generator.
//   saved value   In a backward graph, a tensor that is not floating-point. A tensor of this kind
//                 cannot be a gradient.
//
// Other roles cannot be inferred. For example, an input looks like a buffer, and a returned buffer
// update looks like a user's output. O((nodes + edges) * number of values of k whose shapes fit).
// Normally only one k fits.
RoleMap infer_roles(const Graph& graph);
// An overload for callers that already have the storages.
RoleMap infer_roles(const Graph& graph, const StorageMap& storages);

// Returns the tangents of a graph that may be joint but records no tangents. Tangents are inferred
// only from values and order. O(nodes + edges).
std::vector<NodeId> infer_tangents(const Graph& graph, const StorageMap& storages);
// Records these inputs as tangents, and the graph as joint.
void write_tangents(Graph& graph, const std::vector<NodeId>& tangents);

}  // namespace fxopt
