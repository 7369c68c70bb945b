#pragma once

#include <optional>
#include <span>

#include "ir/graph/graph.h"

// Constraints on a node's place in the schedule that do not come from the values that the node
// reads.

namespace fxopt {

// Returns the control dependencies of the node.
std::span<const ControlDep> control_of(const Graph& graph, NodeId node);

// True if the node records a stream event or waits for one.
bool has_events(const Graph& graph, NodeId node);

// True if the node waits for a control dependency or for an event. Neither passes data. Nodes that
// wait for this node are ignored. They inherit its control dependencies if it is erased
// (Graph::prune_control(), Replacer in passes/pass/replacer.h).
bool is_held(const Graph& graph, NodeId node);

// Returns the stream that the node runs on. Returns nothing for the current stream.
std::optional<StringId> stream_of(const Graph& graph, NodeId node);

// Returns the nodes that are targets of control dependencies. O(nodes).
IdMap<NodeId, bool> control_targets(const Graph& graph);

}  // namespace fxopt
