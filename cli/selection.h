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

// What a command line says of the part of a file to look at. Several options together select what all of them do;
// values of a repeated --node add up.
struct SelectionFlags {
  std::string graph;               // empty: all
  std::vector<std::string> nodes;  // names, with or without '%'
  std::optional<size_t> depth;     // edges around `nodes`; nothing: none
  std::string phase;
  std::string module_prefix;

  bool has_any() const { return !nodes.empty() || !phase.empty() || !module_prefix.empty(); }
};

// Checks what can be checked before a file is read. Errors: kBadOptionValue (no such phase), kUsage (--depth alone).
Status check_selection(const SelectionFlags& flags);

// The graphs of the module that have selected nodes; all nodes of each where nothing selects. A name that no graph has
// is an error (kUnknownNode, with a near match), a selection without nodes a warning; both go to the console.
// O(nodes + edges) for each graph.
std::vector<Selection> select_nodes(Console& console, const Module& module, const SelectionFlags& flags,
                                    Validity validity, const std::string& file);

}  // namespace fxopt
