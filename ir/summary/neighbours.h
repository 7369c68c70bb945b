#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// The nodes at most `distance` edges away from one of `starts`, in either direction, with them, in schedule order. What
// many nodes share ends the walk: it does not go on from placeholders, attributes and the output, unless they are
// starts. Control dependencies do not count. O(nodes + edges).
std::vector<NodeId> neighbourhood(const Graph& graph, const std::vector<NodeId>& starts, size_t distance);

}  // namespace fxopt
