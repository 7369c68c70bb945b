#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

// Drops metadata of a graph: everything besides nodes, edges and values.

namespace fxopt {

// One kind of node metadata.
struct NodeDetail {
  std::string_view name;  // "tags"
  // Drops it from a node. False if the node has none.
  bool (*drop)(Graph& graph, NodeId node);
};
std::span<const NodeDetail> node_details();

// One kind of metadata that a module or its graphs carry once.
struct ModuleDetail {
  std::string_view name;  // "invocations"
  bool (*drop)(Module& module);
};
std::span<const ModuleDetail> module_details();

// Named records: graphs except the main one, attributes, constants, symbols, groups, meshes, op
// schemas, rng slots, streams. Each as kind and name, "symbol s0", in table order.
std::vector<std::string> named_records(const Module& module);
// Removes these records, even if they are still referenced: the verifier finds dangling references.
// False if the module has no such record.
bool remove_records(Module& module, const std::set<std::string>& records);

// Numbers nodes in schedule order and resets the counters of names. False if nothing changed.
bool renumber(Module& module);

// print_text() without the records of storages that no tensor refers to.
std::string print_without_unused_storages(const Module& module);

}  // namespace fxopt
