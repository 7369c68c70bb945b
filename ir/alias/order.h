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

// True if the node has a control dependency on another node, or if the node records a stream event
// or waits for one. Control dependencies and events order nodes without passing data. Control
// dependencies of other nodes on this node do not count. If this node is erased, those nodes
// inherit its control dependencies (Graph::prune_control()). If this node has a replacement, those
// nodes depend on the replacement instead (Replacer in passes/pass/replacer.h).
bool is_held(const Graph& graph, NodeId node);

// Returns the stream that the node runs on. Returns nothing for the current stream.
std::optional<StringId> stream_of(const Graph& graph, NodeId node);

// Returns the nodes that are targets of control dependencies. O(nodes).
IdMap<NodeId, bool> control_targets(const Graph& graph);

}  // namespace fxopt
