#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// Returns the nodes at most `distance` edges away from one of `starts`, in either direction, and
// `starts` themselves, in schedule order. Placeholders, attributes and the output are returned, but
// the walk does not continue from them unless they are starts: many nodes share them. Control
// dependencies are not followed. O(nodes + edges).
std::vector<NodeId> neighbourhood(const Graph& graph, const std::vector<NodeId>& starts, size_t distance);

}  // namespace fxopt
