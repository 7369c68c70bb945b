#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class StorageMap;

// What the graph shows a placeholder to be. kUnspecified: it does not show.
struct DerivedInput {
  NodeId node;
  InputRole role = InputRole::kUnspecified;
  bool mutated = false;  // some node writes its storage
};

// What the graph shows one leaf of the output to be.
struct DerivedOutput {
  NodeId node;  // invalid: None, or no node
  OutputRole role = OutputRole::kUnspecified;
  NodeId of;  // gradient or mutation of this placeholder; invalid: which one is not shown
};

struct RoleMap {
  std::vector<DerivedInput> inputs;    // every placeholder, in schedule order
  std::vector<DerivedOutput> outputs;  // every leaf of the output node's argument
};

// Roles of placeholders and outputs from values, order and dependencies alone. Names and recorded roles are not looked
// at, except by infer_phases() where it finds the gradient's seed.
//
//   symbol         a symbolic value
//   tangent        of a joint graph: the last k placeholders, where the outputs read as m forward outputs and one
//                  gradient or None for each other placeholder, in order and in their shapes; the k tangents have the
//                  shapes of forward outputs in their order, no forward output depends on them and every gradient does;
//                  and no other k will do. Parts of tensor subclasses that are no tensors stand for themselves
//   gradient       depends on a tangent or on the seed. Of which placeholder: in a joint graph by place; else gradients
//                  are laid over the floating placeholders (those that require gradients, where that is recorded), in
//                  order and in equal shapes, and one counts where the leftmost and the rightmost way to do so agree
//   parameter      a placeholder whose gradient leaves the graph (a caller may ask for an input's, too)
//   loss           the one element the seed is made like, or that the only tangent is shaped like
//   mutation       a leaf on the storage of a placeholder that some node writes
//   seed, offset   only read as an argument of that name by operators that make random numbers
//   rng state      only read as the state that an operator is run with
//   saved value    in a backward graph, what is no number a gradient could be
//
// The rest is not shown: an input and a buffer look alike, and so do an update of a buffer that is returned and a
// user's output. O((nodes + edges) * tangent counts that fit, of which there is one).
RoleMap infer_roles(const Graph& graph);
RoleMap infer_roles(const Graph& graph, const StorageMap& storages);  // when the caller has them

// The tangents of a graph that may be joint and has none recorded, which only values and order show. O(nodes + edges).
std::vector<NodeId> infer_tangents(const Graph& graph, const StorageMap& storages);
// Writes them: the graph is joint then.
void write_tangents(Graph& graph, const std::vector<NodeId>& tangents);

}  // namespace fxopt
