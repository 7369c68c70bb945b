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

// The options that select a part of a file. Different options intersect; values of a repeated
// --node are united.
struct SelectionFlags {
  std::string graph;               // empty: all
  std::vector<std::string> nodes;  // names, with or without '%'
  std::optional<size_t> depth;     // edges around `nodes`; nothing: none
  std::string phase;
  std::string module_prefix;

  bool has_any() const { return !nodes.empty() || !phase.empty() || !module_prefix.empty(); }
};

// Checks the options that can be checked before a file is read. Errors: kBadOptionValue (no such
// phase), kUsage (--depth alone).
Status check_selection(const SelectionFlags& flags);

// The graphs of the module that have selected nodes; every node of each if no option selects nodes.
// A name that no graph has is an error (kUnknownNode, with a near match). An empty selection is a
// warning. Both go to the console. O(nodes + edges) for each graph.
std::vector<Selection> select_nodes(Console& console, const Module& module, const SelectionFlags& flags,
                                    Validity validity, const std::string& file);

}  // namespace fxopt
