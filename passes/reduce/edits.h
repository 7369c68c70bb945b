#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

// Edits that make a graph smaller and keep it well formed. They may change the computation: the
// caller checks after each edit whether the graph still fails.

namespace fxopt {

// The replacement for a removed node in its users.
enum class StandIn : uint8_t {
  kInput,        // its nearest ancestor, else a placeholder, with the same metadata; else as kPlaceholder
  kPlaceholder,  // the node itself, which becomes a placeholder with its name, value and phase
  kNothing,      // no replacement: users are removed, and output leaves that refer to one
};

// Whether to remove nodes that lose their last user. Only nodes without effects are removed: an
// effect may cause the failure.
enum class Sweep : uint8_t { kUnread, kNone };

// Removes nodes of `graph`, given in schedule order, without the output. With kPlaceholder a
// placeholder with users stays. Updates records that count inputs and outputs (output specs,
// aliases, subclass layouts, bindings of invocations), and rewires control dependencies. True if
// something changed. O(nodes + edges).
bool remove_nodes(Graph& graph, const std::vector<NodeId>& nodes, StandIn stand_in, Sweep sweep);

// Removes the output leaves marked in `gone` (in the order of output_leaves()), and lists that
// become empty. True if something changed. O(nodes + edges).
bool remove_outputs(Graph& graph, const std::vector<bool>& gone, Sweep sweep);

// Makes the output return `input`, an input of `returned`, instead of `returned`. True if something
// changed. O(nodes + edges).
bool return_input(Graph& graph, NodeId returned, NodeId input, Sweep sweep);

}  // namespace fxopt
