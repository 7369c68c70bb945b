#pragma once

#include <cstdint>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"

namespace fxopt {

// A node from which a search starts. The search computes a bit mask for each node (Reach::masks).
// The search sets `bits` in the mask of the start node and in the mask of each node that depends on
// the start node.
struct ReachStart {
  NodeId node;
  uint64_t bits = 0;
};

// A bit mask for each node: the bitwise OR of ReachStart::bits over all start nodes on which the
// node depends. A start node counts as dependent on itself.
struct Reach {
  IdMap<NodeId, uint64_t> masks;
};

// Finds the nodes that depend on the starts, directly or through other nodes. A node N depends
// directly on:
// - the input nodes of N;
// - each earlier node that writes a storage that N reads.
// The result includes the output node. O(nodes + edges + starts).
Reach reach_forward(const Graph& graph, const StorageMap& storages, const std::vector<ReachStart>& starts);

// Returns true for the ends and for all nodes on which the ends depend, directly or through other
// nodes. A node N depends directly on:
// - the input nodes of N;
// - each earlier node that writes a storage that N reads or returns.
// O(nodes + edges).
IdMap<NodeId, bool> reach_back(const Graph& graph, const StorageMap& storages, const std::vector<NodeId>& ends);

}  // namespace fxopt
