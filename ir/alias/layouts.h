#pragma once

#include "ir/graph/graph.h"

namespace fxopt {

// The tensors whose recorded strides are no fact: results of operators that choose their layout (Op::chooses_layout), which fake
// tensors do not always record where an argument is not contiguous, and whatever takes its strides from these. Products and attention lay out their results by
// themselves. Empty where no operator of the graph chooses. O(nodes + edges).
IdMap<NodeId, bool> find_doubtful_layouts(const Graph& graph);

// Whether what the call returns depends on how its first argument lies in memory, not only on its sizes: `as_strided`, views to other
// sizes, and views that become copies where strides do not allow a view (`reshape`, `contiguous`). O(1).
bool reads_layout(const Graph& graph, NodeId node);

}  // namespace fxopt
