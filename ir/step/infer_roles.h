#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class StorageMap;

// The role that the graph shows for a placeholder. kUnspecified: none is shown.
struct DerivedInput {
  NodeId node;
  InputRole role = InputRole::kUnspecified;
  bool mutated = false;  // some node writes its storage
};

// The role that the graph shows for one leaf of the output.
struct DerivedOutput {
  NodeId node;  // invalid: None, or no node
  OutputRole role = OutputRole::kUnspecified;
  NodeId of;  // gradient or mutation of this placeholder; invalid: none is shown
};

struct RoleMap {
  std::vector<DerivedInput> inputs;    // every placeholder, in schedule order
  std::vector<DerivedOutput> outputs;  // every leaf of the output node's argument
};

// Roles of placeholders and outputs, from values, order and dependencies alone. Names and recorded
// roles are ignored, except where infer_phases() looks for the gradient's seed.
//
//   symbol        a symbolic value
//   tangent       in a joint graph, one of the last k placeholders. The outputs read as m forward
//                 outputs and one gradient or None for each other placeholder, in order and in
//                 their shapes. The k tangents have the shapes of forward outputs, in their order.
//                 No forward output depends on them, every gradient does, and no other k fits. A
//                 part of a tensor subclass that is no tensor is returned in place of its gradient
//   gradient      an output that depends on a tangent or on the seed. In a joint graph its place
//                 gives the placeholder. Elsewhere gradients are matched with the floating-point
//                 placeholders (those that require gradients, if recorded), in order and by equal
//                 shapes. A match counts if the leftmost and the rightmost assignment agree
//   parameter     a placeholder whose gradient leaves the graph (a caller may request an input's as
//                 well)
//   loss          the single element that the seed is made like, or that has the only tangent's
//                 shape
//   mutation      an output on the storage of a placeholder that some node writes
//   seed, offset  read only as an argument of that name, by random operators
//   rng state     read only as the state that an operator is run with
//   saved value   in a backward graph, a tensor that is not floating-point and so is no gradient
//
// Other roles are not shown: an input looks like a buffer, and a returned buffer update looks like
// a user's output. O((nodes + edges) * tangent counts that fit), and one count fits.
RoleMap infer_roles(const Graph& graph);
RoleMap infer_roles(const Graph& graph, const StorageMap& storages);  // when the caller has them

// The tangents of a graph that may be joint but records none, from values and order alone.
// O(nodes + edges).
std::vector<NodeId> infer_tangents(const Graph& graph, const StorageMap& storages);
// Records the tangents, and the graph as joint.
void write_tangents(Graph& graph, const std::vector<NodeId>& tangents);

}  // namespace fxopt
