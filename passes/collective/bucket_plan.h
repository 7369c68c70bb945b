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

// The plan of the pass `bucket`: the collectives to merge, and the new order of the nodes.

namespace fxopt {

struct BucketPlan {
  std::vector<Collective> collectives;
  // The members of each bucket, as indices into `collectives`. A bucket has two or more members, in
  // schedule order.
  std::vector<std::vector<size_t>> buckets;
  // By index into `collectives`: whether the collective can be merged with other collectives. If
  // so, it may change its place among the collectives of its group. Collectives that cannot be
  // merged keep their order among themselves.
  std::vector<bool> is_free;
  std::vector<Obstacle> obstacles;  // by index into `collectives`
  BucketPayload payload = BucketPayload::kGraph;
  BucketForm form = BucketForm::kFunctional;
};

// Returns the name of the module that contains the node. `modules` is the value of the option
// `modules`, and its entries define the modules. The entry `layers.*` defines one module for each
// layer, such as "layers.3". The entry `norm+lm_head` defines one module with the name
// "norm+lm_head". Returns "" if `modules` is empty, and nothing if no entry matches the node's
// module path. O(modules * path).
std::optional<std::string> module_of(const Graph& graph, NodeId node, const std::vector<std::string>& modules);

// Plans the buckets. O((nodes + dependences) * open buckets). A bucket is open while it can get
// more members. At most 64 buckets are open at the same time.
BucketPlan plan_buckets(const Graph& graph, Facts& facts, const BucketOptions& options, const SymbolValues& values);

// Returns an order of all nodes. In this order, the collective calls of a bucket are adjacent, and
// the waits of a bucket are adjacent. Among the nodes that can come next, the node that was first
// in the old order comes first. If buckets depend on each other, the returned order lacks some
// nodes. Only compat=torch forms buckets that depend on each other. O((nodes + dependences) log
// nodes).
std::vector<NodeId> order_for(const Graph& graph, Facts& facts, const BucketPlan& plan);

}  // namespace fxopt
