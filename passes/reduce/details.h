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

// Returns the named records: graphs (except the main graph), attributes, constants, symbols,
// groups, meshes, op schemas, rng slots and streams. Each record is written as its kind and name,
// such as "symbol s0". The records are in table order.
std::vector<std::string> named_records(const Module& module);
// Removes these records, even if other records still refer to them. The verifier finds dangling
// references. Returns false if the module has no such record.
bool remove_records(Module& module, const std::set<std::string>& records);

// Renumbers the nodes in schedule order, and resets the counters of names. Returns false if nothing
// changed.
bool renumber(Module& module);

// Like print_text(), but leaves out the records of storages to which no tensor refers.
std::string print_without_unused_storages(const Module& module);

}  // namespace fxopt
