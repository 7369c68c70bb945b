#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

// Edits that make a graph smaller and keep it well formed. An edit may change the computation.
// After each edit, the caller checks whether the graph still fails.

namespace fxopt {

// The value that users of a removed node read instead.
enum class StandIn : uint8_t {
  // The nearest ancestor whose metadata equals the metadata of the node. If no such ancestor
  // exists, an existing placeholder with equal metadata. If no such placeholder exists, the
  // replacement is made as for kPlaceholder.
  kInput,
  // A placeholder with the name, value and phase of the node.
  kPlaceholder,
  // No replacement. The users of the node are removed. Output leaves that refer to a removed node
  // are removed as well.
  kNothing,
};

// An edit can remove the last user of a node. Sweep decides whether the edit also removes the node:
// - kUnread: The edit removes the node if the node has no effects. A node with an effect, such as a
//   write, stays in the graph. The effect may be the only cause of the graph's failure.
// - kNone: The node stays in the graph.
enum class Sweep : uint8_t { kUnread, kNone };

// Removes `nodes` from `graph`. `nodes` are in schedule order and do not contain the output. With
// kPlaceholder, a placeholder that has users stays. Updates the data that refers to inputs and
// outputs by index: output specs, aliases, subclass layouts, and bindings of invocations. Rewires
// control dependencies. Returns true if something changed. O(nodes + edges).
bool remove_nodes(Graph& graph, const std::vector<NodeId>& nodes, StandIn stand_in, Sweep sweep);

// Removes the leaf output_leaves()[i] of the output for each i with gone[i]. Also removes lists
// that become empty. Returns true if something changed. O(nodes + edges).
bool remove_outputs(Graph& graph, const std::vector<bool>& gone, Sweep sweep);

// Makes the output return `input` instead of `returned`. `input` is an input of `returned`. Returns
// true if something changed. O(nodes + edges).
bool return_input(Graph& graph, NodeId returned, NodeId input, Sweep sweep);

}  // namespace fxopt
