#pragma once

#include "ir/graph/graph.h"

namespace fxopt {

// Whether the node is a recomputed copy of another node. O(origins).
bool is_recomputed(const Graph& graph, NodeId node);

}  // namespace fxopt
