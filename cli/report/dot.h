#pragma once

#include <string>
#include <vector>

#include "cli/print/nodes.h"

namespace fxopt {

// A drawing larger than this takes Graphviz minutes.
constexpr size_t kLargeDrawing = 2000;

// Graphviz text of the selected nodes: one digraph, one cluster for each graph where there are several, in it one for
// each module path that has nodes, filled by phase. What is not selected and next to something that is stands there
// dashed, up to 8 inputs and 8 users of a node; further ones are one dashed node that counts them. Control dependencies
// are dashed edges. Names of a file cannot break the syntax. O((nodes + edges) log nodes).
std::string dot_text(const std::vector<Selection>& selections, Validity validity);

}  // namespace fxopt
