#pragma once

#include "ir/graph/graph.h"

namespace fxopt {

// Returns the nodes whose recorded strides are unreliable. These are results of operators that
// choose their layout (Op::chooses_layout), and nodes that take their strides from such results. If
// an argument is not contiguous, a fake tensor may not record the chosen layout. Matrix products,
// attention calls and `as_strided` do not take strides from their operands. Returns an empty map if
// no operator of the graph chooses its layout. O(nodes + edges).
IdMap<NodeId, bool> find_doubtful_layouts(const Graph& graph);

// Whether the result depends on the memory layout of the first argument and not only on its sizes.
// True for `as_strided`, for views with other sizes, and for views that become copies if the
// strides do not allow a view (`reshape`, `contiguous`). O(1).
bool reads_layout(const Graph& graph, NodeId node);

}  // namespace fxopt
