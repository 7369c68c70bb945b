#pragma once

#include <string_view>

#include "ir/graph/graph.h"

namespace fxopt {

// Records on `node` that `pass` made it from `old`, or replaced `old` by it. O(1).
void add_origin(Graph& graph, NodeId node, NodeId old, OriginKind kind, StringId pass);

// Inserts before `before` a view of the contiguous `source` with these sizes. The view takes phase,
// module and region from `like`. O(rank).
NodeId insert_view(Graph& graph, NodeId source, DimsId sizes, NodeId before, NodeId like);

}  // namespace fxopt
