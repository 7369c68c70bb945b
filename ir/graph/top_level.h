#pragma once

#include <memory>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// Returns the graphs that run on their own, in the module's order. These are the main graph and
// every other graph that meets all of these conditions:
//   - Its `owner` is not set.
//   - Its `kind` is not kSubgraph.
//   - No attribute and no argument of any graph refers to it.
// All other graphs belong to the graphs that refer to them. They are neither rewritten nor measured
// on their own. O(graphs) if every graph except the main graph has an owner or the kind kSubgraph.
// Otherwise O(graphs + attributes + arguments).
std::vector<GraphId> top_level_graphs(const Module& module);

// Returns the names of the graphs to which attributes and arguments of `graph` refer. The result
// may contain a name several times, and names of graphs that the module does not contain.
// O(attributes + arguments).
std::vector<StringId> named_graphs(const Graph& graph);

// Returns a copy of the module with only the graph `id` and the graphs to which this graph refers,
// directly or indirectly. The copy has no invocations (Module::invocations). The copy has no
// certificate, because a certificate covers the whole module. If a removed graph defined a symbol,
// the first placeholder of graph `id` whose value is the symbol becomes the definition. If no
// placeholder has this value, the symbol has no definition. O(size of the module).
std::unique_ptr<Module> extract_graph(const Module& module, GraphId id);

}  // namespace fxopt
