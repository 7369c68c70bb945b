#pragma once

#include <string_view>

#include "ir/graph/graph.h"

namespace fxopt {

// Records on `node` that `pass` made `node` from `old`, or replaced `old` by `node`. O(1).
void add_origin(Graph& graph, NodeId node, NodeId old, OriginKind kind, StringId pass);

// Records on `node` that `pass` merged `old` into `node`. `node` also gets the origins of `old`,
// except those of kind kRecomputed. O(origins of `old`).
void add_merged_origin(Graph& graph, NodeId node, NodeId old, StringId pass);

// Inserts a view of the contiguous tensor `source` directly before the node `before`. The view has
// the sizes `sizes`, and takes its phase, module and region from `like`. O(rank).
NodeId insert_view(Graph& graph, NodeId source, DimsId sizes, NodeId before, NodeId like);

}  // namespace fxopt
