#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/result.h"
#include "ir/graph/module.h"
#include "passes/partition/choice.h"
#include "passes/partition/split.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

// Carries out a choice (choice.h), and measures the step that a choice leads to.

namespace fxopt {

// Merges the gathers of the changed graph (clean/gathers.h), and adds the counters to those of the
// earlier changes. `across`: also merges gathers of forward with gathers of backward.
Result<PassResult> with_gathers_merged(Graph& graph, bool across, Result<PassResult> done, PassContext& context);

// Marks the nodes, which must depend on no backward value, as forward. Moves them before backward,
// so that backward stays one region for remat. A node stays in its place if its data are written in
// between. Counter: into-forward. O(nodes + edges).
void move_to_forward(Graph& graph, Facts& facts, const std::vector<NodeId>& nodes, PassResult& result);

// Moves the nodes of Choice::into_forward to forward. Then copies the values that the choice
// recomputes into backward, by remat_as_decided(). With compat=fxopt, also merges gathers. Errors
// and complexity: those of remat_as_decided().
Result<PassResult> carry_out(Graph& graph, Choice choice, Compat compat, PassContext& context);

// Cuts the joint graph as planned. Then puts backward into the order of autograd, if
// `orders_backward` is true. With compat=fxopt, backward keeps an order with a lower peak. O(nodes
// log nodes + dependences).
void cut(Module& module, GraphId joint, const SplitPlan& plan, bool orders_backward, Compat compat,
         PassContext& context, PassResult& result);

// Returns the ideal peak, in bytes, of the step after a change of the joint graph: the sum over all
// devices. Symbols have the values of sizes_of_symbols(). Returns nothing if a size is still
// unknown. The graph itself stays unchanged: `change` gets a copy. `is_cut`: whether the copy is
// cut, with compat=fxopt. Errors: those of `change` and of plan_split(). O(size of the module),
// plus `change` and analyze_memory().
Result<std::optional<int64_t>> peak_after(const Graph& graph, bool is_cut, const PassContext& context,
                                          const std::function<Result<PassResult>(Graph&, PassContext&)>& change);

}  // namespace fxopt
