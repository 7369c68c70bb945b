#pragma once

#include <cstdint>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"

namespace fxopt {

// A start node of a search, and a bit mask. The search sets the bits of `bits` in the mask of each
// node that depends on the start node.
struct ReachStart {
  NodeId node;
  uint64_t bits = 0;
};

// A bit mask for each node: the bitwise OR of ReachStart::bits over all start nodes on which the
// node depends.
struct Reach {
  IdMap<NodeId, uint64_t> masks;
};

// Finds the nodes that depend on the starts. Follows values from inputs to users. Follows each
// storage from a node that writes the storage to the nodes that read the storage later. Includes
// the output node. O(nodes + edges + starts).
Reach reach_forward(const Graph& graph, const StorageMap& storages, const std::vector<ReachStart>& starts);

// Returns the ends and all nodes that the ends depend on. Follows values from users to inputs.
// Follows each storage from a node that reads the storage to the nodes that wrote the storage
// before. O(nodes + edges).
IdMap<NodeId, bool> reach_back(const Graph& graph, const StorageMap& storages, const std::vector<NodeId>& ends);

}  // namespace fxopt
