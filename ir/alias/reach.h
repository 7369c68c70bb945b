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

// Which starts each node depends on, as the union of their bits.
struct Reach {
  IdMap<NodeId, uint64_t> masks;
};

// Follows values from inputs to users, and storages from a node that writes one to the nodes that read it later. The
// output node takes part. O(nodes + edges + starts).
Reach reach_forward(const Graph& graph, const StorageMap& storages, const std::vector<ReachStart>& starts);

// The nodes that the ends depend on, and the ends themselves: the same way back, from users to inputs and from the nodes that read a
// storage to those that wrote it before. O(nodes + edges).
IdMap<NodeId, bool> reach_back(const Graph& graph, const StorageMap& storages, const std::vector<NodeId>& ends);

}  // namespace fxopt
