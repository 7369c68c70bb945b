#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/print/nodes.h"
#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/summary/opaque.h"

namespace fxopt {

class Console;

// The options that select a part of a file. A selected node must match every given option. If
// --node is repeated, the node must match one of the values of --node.
struct SelectionFlags {
  std::string graph;               // empty: all graphs
  std::vector<std::string> nodes;  // names, with or without '%'
  // Also selects nodes that are at most this many edges away from `nodes`. Absent: 0.
  std::optional<size_t> depth;
  std::string phase;
  std::string module_prefix;

  bool has_any() const { return !nodes.empty() || !phase.empty() || !module_prefix.empty(); }
};

// Checks the options that can be checked before a file is read. Fails with kBadOptionValue if the
// phase does not exist, and with kUsage if --depth is given without --node.
Status check_selection(const SelectionFlags& flags);

// Returns the graphs of the module that have selected nodes, and the selected nodes of each graph.
// If no option selects nodes, every node of each graph is selected. If a name does not exist,
// reports kUnknownNode with a near match. If all names exist and no node is selected, prints a
// warning. Errors and warnings go to the console. O(nodes + edges) for each graph.
std::vector<Selection> select_nodes(Console& console, const Module& module, const SelectionFlags& flags,
                                    Validity validity, const std::string& file);

}  // namespace fxopt
