#pragma once

#include "ir/graph/graph.h"

namespace fxopt {

// True for a copy that recompute made of another node. O(origins).
bool is_recomputed(const Graph& graph, NodeId node);

}  // namespace fxopt
