#pragma once

#include <functional>
#include <memory>

#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/step/step.h"
#include "runtime/plan/plan.h"

namespace fxopt {

// Identifies the first recording of a random call: the run of its graph, and its uid then. A
// recomputed copy has the key of its original, whichever graph it is in, so no pass and no cut
// changes a draw.
struct DrawKey {
  uint32_t invocation = 0;
  uint64_t uid = 0;
};
using DrawKeys = std::function<DrawKey(const Graph&, NodeId)>;

// Lowers one graph to a plan, in schedule order. Sizes, strides and dtypes of values are the
// recorded ones. Lifetimes come from analyze_memory(): from the first step at or after the first
// place, to the last step at or before the last place. Views, getitems and numbers that the host
// can compute from sizes become no steps.
//
// Errors, with the node: kUnsupportedGraph for graphs that a plan cannot express (an argument that
// is not a value, a graph that runs itself, a tensor read after its metadata changed in place).
// kUnknownSize if a value that a step needs has no record, or if a size has no known source. The
// graph must be valid (verify()). O(nodes + edges + tensors + expressions), plus analyze_memory().
Result<std::unique_ptr<Plan>> lower(const Graph& graph, const DrawKeys& draw_key);

// Lowers a module's step, after composing it into one graph (compose_step()). Errors: those of
// find_step() and lower(). `added_gradients`, if not null, receives the names of gradients that
// accumulate onto those of an earlier run: no step of the plan adds them.
Result<std::unique_ptr<Plan>> lower_step(Module& module, std::vector<std::string>* added_gradients = nullptr);

}  // namespace fxopt
