#pragma once

#include <functional>
#include <memory>

#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/step/step.h"
#include "runtime/plan/plan.h"

namespace fxopt {

// Identifies the first recording of a random call. The key holds the run of the call's graph, and
// the uid that the call had in this recording. A recomputed copy has the key of its original in
// every graph. Therefore draws do not change if passes rewrite the graph or split it.
struct DrawKey {
  uint32_t invocation = 0;
  uint64_t uid = 0;
};
using DrawKeys = std::function<DrawKey(const Graph&, NodeId)>;

// Lowers one graph to a plan, in schedule order. Values have their recorded sizes, strides and
// dtypes. Lifetimes come from analyze_memory(). In the plan, a lifetime begins with the first step
// at or after its first place in the schedule. A lifetime ends with the last step at or before its
// last place in the schedule. Views, getitems and numbers that the host can compute from sizes do
// not become steps.
//
// The graph must be valid (verify()). O(nodes + edges + tensors + expressions), plus
// analyze_memory(). Each error contains the node:
// - kUnsupportedGraph: A plan cannot express the graph. Examples are an argument that is not a
//   value, a graph that runs itself, and a tensor that is read after its metadata changed in place.
// - kUnknownSize: A value that a step needs has no record, or a size has no known source.
Result<std::unique_ptr<Plan>> lower(const Graph& graph, const DrawKeys& draw_key);

// Composes a module's step into one graph with compose_step(), and lowers this graph. Fails with
// the errors of find_step() and lower(). If `added_gradients` is not null, it receives names of
// gradients that accumulate onto gradients of an earlier run. No step of the plan performs these
// additions.
Result<std::unique_ptr<Plan>> lower_step(Module& module, std::vector<std::string>* added_gradients = nullptr);

}  // namespace fxopt
