#pragma once

#include <functional>
#include <memory>

#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/step/step.h"
#include "runtime/plan/plan.h"

namespace fxopt {

// Where a random call was first written down: in which run of its graph, and the uid it had then. Copies that recompute
// makes have that of their original, in whichever graph they are, so that no pass and no cut moves a draw.
struct DrawKey {
  uint32_t invocation = 0;
  uint64_t uid = 0;
};
using DrawKeys = std::function<DrawKey(const Graph&, NodeId)>;

// The plan of one graph, by its schedule. Sizes, strides and dtypes of values are the recorded ones, lifetimes those of
// analyze_memory(), of whose places a step's is the last that is not after it. Views, getitems and numbers that the host
// can compute from sizes become no steps.
//
// Errors, with the node: kUnsupportedGraph for what a plan cannot say (an argument that is no value, a graph that runs
// itself, a tensor that is read after its metadata changed in place), kUnknownSize where nothing is recorded of a value
// that a step needs, or where a size depends on what nothing tells. The graph must be valid (verify()).
// O(nodes + edges + tensors + expressions), and what analyze_memory() takes.
Result<std::unique_ptr<Plan>> lower(const Graph& graph, const DrawKeys& draw_key);

// The plan of a module's step, which is composed into one graph for it (compose_step()). Errors: those of find_step()
// and of lower().
// `added_gradients`, where it is not null, gets the names of gradients that are added to those of an earlier run: no step of the plan
// adds them.
Result<std::unique_ptr<Plan>> lower_step(Module& module, std::vector<std::string>* added_gradients = nullptr);

}  // namespace fxopt
