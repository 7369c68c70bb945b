#pragma once

#include <memory>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// The graphs that run on their own, in their order: the main one, and every other one that has no owner, is not marked
// as a subgraph, and that no attribute and no argument of any graph names. The others belong to what names them: they
// are neither rewritten nor measured on their own. O(graphs), where each but the main one is marked or owned; else O(graphs +
// attributes + arguments).
std::vector<GraphId> top_level_graphs(const Module& module);

// The graphs that attributes and arguments of the graph name, as often as they do; they may not be there. O(attributes +
// arguments).
std::vector<StringId> named_graphs(const Graph& graph);

// A copy of the module with that graph, and those it names, alone: without invocations, and without the certificate, which is
// of the whole. A symbol defined in a graph that is gone is defined by the first placeholder here that is it, else
// nowhere. O(size of the module).
std::unique_ptr<Module> extract_graph(const Module& module, GraphId id);

}  // namespace fxopt
