#pragma once

#include <string_view>

#include "ir/graph/graph.h"

namespace fxopt {

// Records on `node` that it was made from `old`, or stands for it, by that pass. O(1).
void add_origin(Graph& graph, NodeId node, NodeId old, OriginKind kind, StringId pass);

// A view of `source` under these sizes before `before`, which runs as `like` does: phase, module, region. `source` lies row by row.
// O(rank).
NodeId insert_view(Graph& graph, NodeId source, DimsId sizes, NodeId before, NodeId like);

}  // namespace fxopt
