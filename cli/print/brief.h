#pragma once

#include <cstddef>
#include <ostream>
#include <string>

#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The number of columns of a line of brief text if the output is not a terminal.
inline constexpr size_t kBriefWidth = 160;

// Returns a node as one line of at most `width` columns. The line is for reading, not for parsing.
// The line holds the name, type, target and arguments, followed by the phase, tag, module and
// source line. Parts that are too long are cut and end in "...".
std::string brief_node(const Graph& graph, NodeId node, size_t width);

// Prints the graphs of a module with one line for each node. Then prints the symbols, process
// groups and other definitions that print_records_text() returns. Ends with the counts of
// definitions that are not printed, such as storages. O(nodes + definitions).
void print_brief(std::ostream& out, const Module& module, size_t width);

// Prints only `graph`, with one line for each node.
void print_brief(std::ostream& out, const Graph& graph, size_t width);

}  // namespace fxopt
