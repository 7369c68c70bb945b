#pragma once

#include <cstdint>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"

namespace fxopt {

// A node to start from, and the bits it spreads.
struct ReachStart {
  NodeId node;
  uint64_t bits = 0;
};

// The starts that each node depends on, as the union of their bits.
struct Reach {
  IdMap<NodeId, uint64_t> masks;
};

// Follows values from inputs to users, and storages from a node that writes one to the nodes that
// read it later. Includes the output node. O(nodes + edges + starts).
Reach reach_forward(const Graph& graph, const StorageMap& storages, const std::vector<ReachStart>& starts);

// The ends and the nodes that they depend on: the same relation backwards, from users to inputs and
// from the nodes that read a storage to those that wrote it before. O(nodes + edges).
IdMap<NodeId, bool> reach_back(const Graph& graph, const StorageMap& storages, const std::vector<NodeId>& ends);

}  // namespace fxopt
