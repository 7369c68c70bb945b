#pragma once

#include "ir/graph/graph.h"

namespace fxopt {

// The nodes whose recorded strides are unreliable: results of operators that choose their layout
// (Op::chooses_layout), and nodes that take their strides from such results. Fake tensors do not
// always record the chosen layout if an argument is not contiguous. Products and attention lay out
// their results themselves. Empty if no operator of the graph chooses. O(nodes + edges).
IdMap<NodeId, bool> find_doubtful_layouts(const Graph& graph);

// Whether the result depends on the memory layout of the first argument and not only on its sizes:
// `as_strided`, views with other sizes, and views that become copies if strides do not allow a view
// (`reshape`, `contiguous`). O(1).
bool reads_layout(const Graph& graph, NodeId node);

}  // namespace fxopt
