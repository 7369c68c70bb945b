#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

// Drops metadata of a graph. Metadata is everything except nodes, edges and values.

namespace fxopt {

// One kind of node metadata.
struct NodeDetail {
  std::string_view name;  // "tags"
  // Drops the metadata from a node. Returns false if the node has none.
  bool (*drop)(Graph& graph, NodeId node);
};
std::span<const NodeDetail> node_details();

// One kind of metadata that is stored once for a module or for a graph.
struct ModuleDetail {
  std::string_view name;  // "invocations"
  bool (*drop)(Module& module);
};
std::span<const ModuleDetail> module_details();

// Returns the named entries of the module in this order: graphs (except the main graph), symbols,
// process groups, meshes, op schemas, constants, random generators, streams and attributes. Each
// entry is written as its kind and name, such as "symbol s0".
std::vector<std::string> named_records(const Module& module);
// Removes the entries `records`, even if the module still refers to them. The verifier finds
// dangling references. Returns false if the module has none of the entries.
bool remove_records(Module& module, const std::set<std::string>& records);

// Renumbers the uids of nodes in schedule order, and resets the counters that make new names
// unique. Returns false if nothing changed.
bool renumber(Module& module);

// Like print_text(), but leaves out storages to which no tensor refers.
std::string print_without_unused_storages(const Module& module);

}  // namespace fxopt
