#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/alias/collective_table.h"
#include "ir/step/facts.h"
#include "passes/collective/bucket.h"
#include "passes/collective/obstacle.h"

// Decides which collectives `bucket` merges, and the order of nodes that the buckets need.

namespace fxopt {

struct BucketPlan {
  std::vector<Collective> collectives;
  // The members of each bucket, as indices into `collectives`. A bucket has two or more members, in
  // schedule order.
  std::vector<std::vector<size_t>> buckets;
  // By index: whether the collective can be merged. If two collectives of one group can be merged,
  // they may change their order. All other collectives keep their order of issue.
  std::vector<bool> is_free;
  std::vector<Obstacle> obstacles;  // by index
  BucketPayload payload = BucketPayload::kGraph;
  BucketForm form = BucketForm::kFunctional;
};

// Returns the entry of `modules` that contains the node. Returns "" if `modules` is empty, and
// nothing if no entry contains the node. O(modules * path).
std::optional<std::string> module_of(const Graph& graph, NodeId node, const std::vector<std::string>& modules);

// Plans the buckets. O((nodes + dependences) * open buckets). At most 64 buckets are open at a
// time.
BucketPlan plan_buckets(const Graph& graph, Facts& facts, const BucketOptions& options, const SymbolValues& values);

// Returns an order of all nodes. In this order, the starts of a bucket are adjacent, and the waits
// of a bucket are adjacent. Among the nodes that can come next, the node with the earliest old
// place comes first. If buckets depend on each other, the returned order lacks some nodes. Only
// compat=torch forms buckets that depend on each other. O((nodes + dependences) log nodes).
std::vector<NodeId> order_for(const Graph& graph, Facts& facts, const BucketPlan& plan);

}  // namespace fxopt
