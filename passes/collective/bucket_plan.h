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
  // Each bucket's members as indices into `collectives`: two or more, in schedule order.
  std::vector<std::vector<size_t>> buckets;
  // By index: whether the collective can be merged, and may move past others of its group that can.
  // The others keep their order of issue.
  std::vector<bool> is_free;
  std::vector<Obstacle> obstacles;  // by index
  BucketPayload payload = BucketPayload::kGraph;
  BucketForm form = BucketForm::kFunctional;
};

// The entry of `modules` that contains the node. "" if `modules` is empty; nothing if no entry
// contains the node. O(modules * path).
std::optional<std::string> module_of(const Graph& graph, NodeId node, const std::vector<std::string>& modules);

// The number of calls that the plan saves.
int64_t calls_saved(const BucketPlan& plan);

// Plans the buckets. O((nodes + dependences) * open buckets), of which there are at most 64.
BucketPlan plan_buckets(const Graph& graph, Facts& facts, const BucketOptions& options, const SymbolValues& values);

// An order of all nodes in which the starts of each bucket are adjacent, and so are its waits.
// Every node is as early as its old place allows. Returns fewer nodes if buckets depend on each
// other, which only compat=torch allows. O((nodes + dependences) log nodes).
std::vector<NodeId> order_for(const Graph& graph, Facts& facts, const BucketPlan& plan);

}  // namespace fxopt
