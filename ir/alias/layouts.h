#pragma once

#include "ir/graph/graph.h"

namespace fxopt {

// Returns the nodes whose recorded strides are unreliable. These are results of operators that
// choose their layout (Op::chooses_layout), and nodes that take their strides from such results. If
// an argument is not contiguous, a fake tensor may not record the chosen layout. Matrix products,
// attention calls and `as_strided` do not take strides from their operands. Returns an empty map if
// no operator of the graph chooses its layout. O(nodes + edges).
IdMap<NodeId, bool> find_doubtful_layouts(const Graph& graph);

// Whether the result depends on the memory layout of the first argument, and not only on the
// argument's sizes. True for three kinds of ops:
// - ops that access the argument's memory with given strides (`as_strided`, see sets_strides());
// - `view` to given sizes, and `_unsafe_view`;
// - ops that return a view in some calls and a copy in other calls (ViewKind::kMaybeView, such as
//   `reshape` and `contiguous`).
// O(1).
bool reads_layout(const Graph& graph, NodeId node);

}  // namespace fxopt
