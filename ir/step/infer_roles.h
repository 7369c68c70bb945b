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
  // The leaf is the gradient or the new value of this placeholder. Invalid if no placeholder can be
  // inferred.
  NodeId of;
};

struct RoleMap {
  std::vector<DerivedInput> inputs;    // all placeholders, in schedule order
  std::vector<DerivedOutput> outputs;  // all leaves of the output node's argument
};

// Infers the roles of placeholders and outputs from values, order and dependencies only. Names and
// recorded roles are ignored, with one exception: infer_phases() uses recorded roles to find the
// seed, which is the gradient of the loss.
//
//   symbol        A symbolic value.
//   tangent       In a joint graph, one of the last k placeholders. These placeholders are tangents
//                 only if exactly one k meets all of these conditions:
//                 - The tangents are floating-point tensors, and k is at most 256.
//                 - The outputs are forward outputs, followed by one gradient or None for each
//                   placeholder before the tangents. The gradients have the order, dtypes and
//                   shapes of these placeholders.
//                 - Each tangent has the dtype and shape of a forward output. The tangents have the
//                   order of these outputs.
//                 - No forward output depends on a tangent.
//                 - Every gradient depends on a tangent. At least one gradient exists.
//                 Some placeholders are non-tensor components of a tensor subclass, such as a
//                 device mesh. The outputs for these components follow other rules:
//                 - Normally, the graph returns the component itself in place of a gradient. This
//                   output must depend on no tangent.
//                 - If a placeholder has the output None, the non-tensor components directly after
//                   this placeholder have no outputs.
//   gradient      An output that depends on a tangent or on the seed. In a joint graph, the
//                 position of the output determines the placeholder. In other graphs of a whole
//                 step, gradients are assigned to floating-point placeholders in order. A gradient
//                 has the dtype and shape of its placeholder. If the file records that some
//                 placeholders require gradients, only these placeholders are used. Two assignments
//                 are computed. The leftmost assignment gives each gradient the first placeholder
//                 that is possible, and the rightmost assignment gives it the last. A gradient gets
//                 a placeholder only if both assignments give it the same placeholder.
//   parameter     A placeholder whose gradient is an output of the graph. An input whose gradient
//                 the caller requests cannot be distinguished from a parameter.
//   loss          In a joint graph with one tangent, the only forward output that has a single
//                 element and the tangent's shape. In other graphs of a whole step, an output that
//                 shares its storage with the operand of the seed, such as `loss` in
//                 ones_like(loss).
//   mutation      An output on the storage of a placeholder that some node writes.
//   seed, offset  A placeholder that random operators read only as the argument named `seed` or
//                 `offset`.
//   rng state     A placeholder that operators read only as the state of a random generator.
//   saved value   In a backward graph, a tensor that is not floating-point. A tensor of this kind
//                 cannot be a gradient.
//
// Other roles cannot be inferred. For example, an input looks like a buffer. The new value of a
// buffer looks like an output for the user (OutputRole::kUser), if no node writes the value into
// the buffer.
//
// O((nodes + edges) * candidates). A candidate is a value of k that meets the first three
// conditions on k. Normally, one candidate exists.
RoleMap infer_roles(const Graph& graph);
// An overload for callers that already have the storages.
RoleMap infer_roles(const Graph& graph, const StorageMap& storages);

// Returns the placeholders that are tangents according to infer_roles(). Returns nothing if the
// recorded kind of the graph is not joint. Intended for graphs that record no tangents. The
// complexity is that of infer_roles().
std::vector<NodeId> infer_tangents(const Graph& graph, const StorageMap& storages);
// Records in the graph that the placeholders `tangents` are tangents, and that the graph is joint.
void write_tangents(Graph& graph, const std::vector<NodeId>& tangents);

}  // namespace fxopt
