#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"

// Finds the nodes that gather sharded parameters. The analysis uses data flow and ignores names.

namespace fxopt {

enum class UnshardContent : uint8_t {
  kOther,     // all other values, such as activations
  kShard,     // shards of parameters; only their layout and dtype may have changed
  kGathered,  // gathered parameters; only their layout and dtype may have changed
};

struct UnshardMap {
  IdMap<NodeId, UnshardContent> content;
  IdMap<NodeId, bool> leads;         // for kShard: an all-gather depends on the node
  IdMap<NodeId, bool> is_past_wait;  // for kGathered: the node depends on the result of a wait
  int64_t gathers = 0;               // number of all-gathers of shards

  // Whether the node is on the path from a shard to the whole parameter, or changes the layout of
  // the whole parameter.
  bool is_part(NodeId node) const {
    return content.get(node) == UnshardContent::kGathered ||
           (content.get(node) == UnshardContent::kShard && leads.get(node));
  }
};

bool is_all_gather(const Graph& graph, NodeId node);

// Follows the shards in `from` through the calls for which `is_looked_at(node)` is true. O(nodes +
// edges).
UnshardMap find_unshards(const Graph& graph, const std::vector<NodeId>& from,
                         const std::function<bool(NodeId)>& is_looked_at);

// Returns the inputs that are parameters. If the file does not record the roles of inputs, the
// roles are inferred. If `or_saved` is true, the result also contains the inputs that the file
// records as saved values, because a saved value may be a parameter.
std::vector<NodeId> parameters_of(const Graph& graph, const StorageMap& storages, bool or_saved);

}  // namespace fxopt
