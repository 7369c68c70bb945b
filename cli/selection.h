#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "ir/analysis/opaque.h"
#include "ir/graph/module.h"

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

// The selected nodes of one graph, in schedule order.
struct Selection {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;
};

// Checks what can be checked before a file is read. Errors: kBadOptionValue (no such phase), kUsage (--depth alone).
Status check_selection(const SelectionFlags& flags);

// True phases in a valid graph, as passes and `mem` see them; stored ones in a broken graph, where they cannot be told.
IdMap<NodeId, Phase> visible_phases(const Graph& graph, Validity validity);

// The graphs of the module that have selected nodes; all nodes of each where nothing selects. A name that no graph has
// is an error (kUnknownNode, with a near match), a selection without nodes a warning; both go to the console.
// O(nodes + edges) for each graph.
std::vector<Selection> select_nodes(Console& console, const Module& module, const SelectionFlags& flags,
                                    Validity validity, const std::string& file);

}  // namespace fxopt
