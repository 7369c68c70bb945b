#pragma once

#include <string>
#include <vector>

#include "cli/print/nodes.h"

namespace fxopt {

// Graphviz takes minutes for a larger drawing.
constexpr size_t kLargeDrawing = 2000;

// Graphviz text of the selected nodes: one digraph. It has a cluster for each graph if there are
// several, and in it one for each module path with nodes. Nodes are filled by phase. Unselected
// neighbours of selected nodes are dashed, up to 8 inputs and 8 users of a node; one dashed node
// counts the others. Control dependencies are dashed edges. Names from a file cannot break the
// syntax. O((nodes + edges) log nodes).
std::string dot_text(const std::vector<Selection>& selections, Validity validity);

}  // namespace fxopt
