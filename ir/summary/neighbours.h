#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// Returns the nodes that are at most `distance` edges away from one of `starts`, in either
// direction. The result includes `starts` and is in schedule order. The result may include
// placeholders, attributes and the output. The walk stops at each placeholder, attribute or output
// that is not in `starts`, because such a node has many neighbours. Control dependencies are not
// followed. O(nodes + edges).
std::vector<NodeId> neighbourhood(const Graph& graph, const std::vector<NodeId>& starts, size_t distance);

}  // namespace fxopt
