#pragma once

#include <optional>

#include "ir/graph/graph.h"

// Constraints on a node's place besides the values it reads.

namespace fxopt {

// True if the node records a stream event or waits for one.
bool has_events(const Graph& graph, NodeId node);

// True if the node waits for something that gives it no data: a control dependency or an event.
// Nodes that wait for this one do not count: if it is erased, they inherit its control dependencies
// (Graph::prune_control(), Replacer in passes/pass/replacer.h).
bool is_held(const Graph& graph, NodeId node);

// The stream that the node runs on; nothing for the current stream.
std::optional<StringId> stream_of(const Graph& graph, NodeId node);

// The nodes that are targets of control dependencies. O(nodes).
IdMap<NodeId, bool> control_targets(const Graph& graph);

}  // namespace fxopt
