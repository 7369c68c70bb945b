#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"

// Edits that make a graph smaller and keep it well formed. They do not keep what it computes: whoever reduces a failing
// graph decides after each whether it still fails.

namespace fxopt {

// What users of a removed node read instead.
enum class StandIn : uint8_t {
  kInput,  // the nearest of what it is computed from, else a placeholder, of the same metadata; else as kPlaceholder
  kPlaceholder,  // the node itself, which becomes a placeholder with its name, value and phase
  kNothing,      // users go too, and the leaves of the output that name one of them
};

// Whether nodes whose last user went go too. Only nodes without effects do: what a call does beyond its outputs may be
// what matters.
enum class Sweep : uint8_t { kUnread, kNone };

// Removes nodes of `graph`, given in schedule order without the output. With kPlaceholder a placeholder that is read
// stays. Records that count inputs and outputs (output specs, aliases, subclass layouts, bindings of invocations) are
// brought up to date, control dependencies rewired. True when something changed. O(nodes + edges).
bool remove_nodes(Graph& graph, const std::vector<NodeId>& nodes, StandIn stand_in, Sweep sweep);

// Removes the leaves of the output whose place (in the order of output_leaves()) is marked in `gone`, and lists that
// are empty after that. True when something changed. O(nodes + edges).
bool remove_outputs(Graph& graph, const std::vector<bool>& gone, Sweep sweep);

// Makes the output return an input of `returned` in its place. True when something changed. O(nodes + edges).
bool return_input(Graph& graph, NodeId returned, NodeId input, Sweep sweep);

}  // namespace fxopt
