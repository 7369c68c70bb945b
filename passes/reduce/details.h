#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

// What a graph carries besides nodes, edges and values, and how to drop it.

namespace fxopt {

// One kind of thing that nodes carry.
struct NodeDetail {
  std::string_view name;  // "tags"
  // Drops it from a node. False when the node has none.
  bool (*drop)(Graph& graph, NodeId node);
};
std::span<const NodeDetail> node_details();

// One kind of thing that a module or its graphs carry once.
struct ModuleDetail {
  std::string_view name;  // "invocations"
  bool (*drop)(Module& module);
};
std::span<const ModuleDetail> module_details();

// Records that have names: graphs but the main one, attributes, constants, symbols, groups, meshes, op schemas, rng
// slots, streams. Each as kind and name, "symbol s0", in the order of the tables.
std::vector<std::string> named_records(const Module& module);
// Removes those, whoever names them: the verifier finds what then names nothing. False when there is none of them.
bool remove_records(Module& module, const std::set<std::string>& records);

// Numbers nodes in schedule order and starts the counters of names anew. False when nothing changed.
bool renumber(Module& module);

// print_text() without the records of storages that no tensor names.
std::string print_without_unused_storages(const Module& module);

}  // namespace fxopt
