#pragma once

#include <functional>
#include <memory>

#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/step/step.h"
#include "runtime/plan/plan.h"

namespace fxopt {

// Selects the random numbers of a call. FxDraw defines both members. A recomputed copy has the key
// of its original call, even in another graph. Therefore the random numbers do not change if passes
// rewrite the graph or split it.
struct DrawKey {
  uint32_t invocation = 0;
  uint64_t uid = 0;
};
using DrawKeys = std::function<DrawKey(const Graph&, NodeId)>;

// Lowers one graph to a plan, in schedule order. Values have their recorded sizes, strides and
// dtypes. Views, getitems and numbers that the host can compute from sizes do not become steps.
//
// Lifetimes of storages come from analyze_memory(), which returns the first node and the last node
// of each lifetime. In the plan, a lifetime begins with the step of the first node, and ends with
// the step of the last node. If the first node has no step, the lifetime begins with the step of
// the next node that has a step. If the last node has no step, the lifetime ends with the step of
// the nearest earlier node that has a step. A lifetime has at least one step. If no step waits for
// a collective, send or receive, the lifetimes of its storages end with the plan's last step.
//
// The graph must be valid (verify()). O(nodes + edges + tensors + expressions), plus
// analyze_memory(). Each error contains the node:
// - kUnsupportedGraph: A plan cannot express the graph. Examples are an argument of a type that
//   plans cannot store, a graph that calls itself, and a tensor that is read after an in-place call
//   changed its sizes.
// - kUnknownSize: The file records no value for a node that another node uses, or a size is needed
//   before an input or a call determines it.
Result<std::unique_ptr<Plan>> lower(const Graph& graph, const DrawKeys& draw_key);

// Joins the graphs of the module's training step into one graph with compose_step(), and lowers the
// joined graph to a plan. Fails with the errors of find_step() and lower(). If a graph runs more
// than once in the step, the caller of the graphs adds the gradients of all runs. The plan does not
// contain these additions. If `added_gradients` is not null, it receives the names of the gradients
// that the caller adds to earlier gradients.
Result<std::unique_ptr<Plan>> lower_step(Module& module, std::vector<std::string>* added_gradients = nullptr);

}  // namespace fxopt
