#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"

// How parameters stored in shards on several ranks become whole, found from data flow, never from
// names.

namespace fxopt {

enum class UnshardContent : uint8_t {
  kOther,     // anything else, such as activations
  kShard,     // parameters' shards, unchanged except for place and dtype
  kGathered,  // gathered parameters, likewise
};

struct UnshardMap {
  IdMap<NodeId, UnshardContent> content;
  IdMap<NodeId, bool> leads;         // kShard: an all-gather depends on it
  IdMap<NodeId, bool> is_past_wait;  // kGathered: depends on the result of a wait
  int64_t gathers = 0;               // all-gathers of shards

  // Whether the node is on the way from a shard to the whole parameter, or lays out the whole one.
  bool is_part(NodeId node) const {
    return content.get(node) == UnshardContent::kGathered ||
           (content.get(node) == UnshardContent::kShard && leads.get(node));
  }
};

bool is_all_gather(const Graph& graph, NodeId node);

// Follows the shards `from` through the calls for which `is_looked_at(node)` is true.
// O(nodes + edges).
UnshardMap find_unshards(const Graph& graph, const std::vector<NodeId>& from,
                         const std::function<bool(NodeId)>& is_looked_at);

// The inputs that are parameters, as recorded, else as inferred. `or_saved` adds recorded inputs
// that forward saves for backward, which may be parameters.
std::vector<NodeId> parameters_of(const Graph& graph, const StorageMap& storages, bool or_saved);

}  // namespace fxopt
