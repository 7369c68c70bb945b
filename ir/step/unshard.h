#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"

// How parameters that lie in shards on several ranks become whole, told by where data come from, never by names.

namespace fxopt {

enum class UnshardContent : uint8_t {
  kOther,     // of anything else, activations among it
  kShard,     // of parameters' shards, as they are but for place and dtype
  kGathered,  // of gathered parameters, likewise
};

struct UnshardMap {
  IdMap<NodeId, UnshardContent> content;
  IdMap<NodeId, bool> leads;         // kShard: a gather is made of it
  IdMap<NodeId, bool> is_past_wait;  // kGathered: made of what a wait has handed on
  int64_t gathers = 0;               // all-gathers of shards

  // Of the way from a shard to the whole parameter, and of what lays it out anew.
  bool is_part(NodeId node) const {
    return content.get(node) == UnshardContent::kGathered ||
           (content.get(node) == UnshardContent::kShard && leads.get(node));
  }
};

// Whether the node is an all-gather.
bool is_all_gather(const Graph& graph, NodeId node);

// Follows the shards `from` through the calls for which `is_looked_at(node)` holds. O(nodes + edges).
UnshardMap find_unshards(const Graph& graph, const std::vector<NodeId>& from,
                         const std::function<bool(NodeId)>& is_looked_at);

// The inputs that are parameters, as recorded, else as inferred. `or_saved`: inputs that forward saves for backward, too, of
// which nothing tells whether they are.
std::vector<NodeId> parameters_of(const Graph& graph, const StorageMap& storages, bool or_saved);

}  // namespace fxopt
