#pragma once

#include <optional>

#include "ir/graph/graph.h"

// What holds a node in its place beside the values it reads.

namespace fxopt {

// True when the node records a stream event or waits for one.
bool has_events(const Graph& graph, NodeId node);

// True when the node waits for something that hands it no data: a control dependency or an event. What others wait for
// is not asked: a node that goes hands it on (Graph::prune_control(), Replacer in passes/pass/replacer.h).
bool is_held(const Graph& graph, NodeId node);

// The stream the node runs on; nothing for the current one.
std::optional<StringId> stream_of(const Graph& graph, NodeId node);

// Nodes that a control dependency of another is on. O(nodes).
IdMap<NodeId, bool> control_targets(const Graph& graph);

}  // namespace fxopt
