#pragma once

#include <memory>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// Returns the graphs that run on their own, in their order. These are the main graph and every
// other graph that meets all of these conditions:
//   - It has no owner.
//   - It is not marked as a subgraph.
//   - No attribute and no argument of any graph refers to it.
// All other graphs belong to the graphs that refer to them. They are neither rewritten nor measured
// on their own. O(graphs) if each graph except the main graph is marked or owned. Otherwise
// O(graphs + attributes + arguments).
std::vector<GraphId> top_level_graphs(const Module& module);

// Returns the names of the graphs to which attributes and arguments of `graph` refer. A name may
// occur several times. A graph of that name may be missing. O(attributes + arguments).
std::vector<StringId> named_graphs(const Graph& graph);

// Returns a copy of the module with only the graph `id` and the graphs to which this graph refers,
// directly or indirectly. The copy has no invocations. The copy has no certificate, because a
// certificate covers the whole module. If a removed graph defined a symbol, the first placeholder
// of graph `id` whose value is the symbol becomes the definition. If no placeholder has this value,
// the symbol has no definition. O(size of the module).
std::unique_ptr<Module> extract_graph(const Module& module, GraphId id);

}  // namespace fxopt
