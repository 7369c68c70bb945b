#pragma once

#include <memory>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// The graphs that run on their own, in their order: the main graph, and every other graph that has
// no owner, is not marked as a subgraph, and is not named by an attribute or argument of any graph.
// All others belong to the graphs that name them and are neither rewritten nor measured on their
// own. O(graphs) if each graph but the main one is marked or owned; else
// O(graphs + attributes + arguments).
std::vector<GraphId> top_level_graphs(const Module& module);

// The graphs that attributes and arguments of the graph name, with repeats. They may not exist.
// O(attributes + arguments).
std::vector<StringId> named_graphs(const Graph& graph);

// A copy of the module with only that graph and the graphs it names. It has no invocations, and no
// certificate, because that covers the whole module. A symbol that a removed graph defined is
// defined by the first placeholder of this graph that has it as its value, else nowhere.
// O(size of the module).
std::unique_ptr<Module> extract_graph(const Module& module, GraphId id);

}  // namespace fxopt
