#pragma once

#include <cstddef>
#include <ostream>
#include <string>

#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The columns of a brief line if it does not go to a terminal.
inline constexpr size_t kBriefWidth = 160;

// A node in one line of at most `width` columns, for reading, not for parsing: name, type, target
// and arguments, then phase, tag, module and source line. Longer parts end in "...".
std::string brief_node(const Graph& graph, NodeId node, size_t width);

// The graphs of a module, a node a line; then the symbols, groups, meshes and runs that they refer
// to, a record a line, and the numbers of the other records. O(nodes + records).
void print_brief(std::ostream& out, const Module& module, size_t width);

// Only that graph.
void print_brief(std::ostream& out, const Graph& graph, size_t width);

}  // namespace fxopt
