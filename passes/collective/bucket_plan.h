#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/alias/collective_table.h"
#include "ir/step/facts.h"
#include "passes/collective/bucket.h"

// Which collectives become one, and in which order the nodes stand then.

namespace fxopt {

// Why a collective stays alone.
struct Alone {
  std::string_view code;  // stable; empty: it is in a bucket, or of no kind that is asked for
  std::string text;
};

struct BucketPlan {
  std::vector<Collective> collectives;
  // Members by their place among `collectives`, two or more, in schedule order.
  std::vector<std::vector<size_t>> buckets;
  // Which could be merged, and may move against each other in their group; the others keep their order of issue.
  std::vector<bool> is_free;
  std::vector<Alone> alone;  // by place
  BucketPayload payload = BucketPayload::kGraph;
  BucketForm form = BucketForm::kFunctional;
};

// Which of the modules asked for a node is of: "" where none is asked for, nothing where it is of none. O(modules * path).
std::optional<std::string> module_of(const Graph& graph, NodeId node, const std::vector<std::string>& modules);

// How many calls fewer there are by it.
int64_t calls_saved(const BucketPlan& plan);

// Decides. O((nodes + dependences) * buckets open at a time), which are 64 at most.
BucketPlan plan_buckets(const Graph& graph, Facts& facts, const BucketOptions& options, const SymbolValues& values);

// An order of all nodes in which the starts of a bucket stand together, and so do its waits; every node as early as its old place
// allows. Fewer nodes where buckets depend on each other, which those of compat=torch may. O((nodes + dependences) log nodes).
std::vector<NodeId> order_for(const Graph& graph, Facts& facts, const BucketPlan& plan);

}  // namespace fxopt
