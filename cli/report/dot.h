#pragma once

#include <string>
#include <vector>

#include "cli/print/nodes.h"

namespace fxopt {

// Graphviz needs minutes to draw a graph with more nodes than this limit.
constexpr size_t kLargeDrawing = 2000;

// Returns the selected nodes as one digraph in the language of Graphviz:
// - If there are several graphs, each graph is a cluster.
// - Inside its graph, each module path that has nodes is a cluster.
// - The fill colour of a node shows its phase.
// - Unselected neighbours of selected nodes are dashed nodes: up to 8 inputs and 8 users of each
//   selected node. An additional dashed node counts the neighbours that are not drawn.
// - Control dependencies are dashed edges.
//
// Names from a file cannot break the syntax. O((nodes + edges) log nodes).
std::string dot_text(const std::vector<Selection>& selections, Validity validity);

}  // namespace fxopt
