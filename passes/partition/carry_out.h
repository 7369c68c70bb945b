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

// Carries out a choice of saved values (choice.h), and measures the peak of the resulting training
// step.

namespace fxopt {

// Merges equal gathers of the graph with merge_gathers() (clean/gathers.h). If `across` is true,
// also merges gathers of forward with gathers of backward, and calls remark_gathers_apart(). `done`
// is the result of earlier changes to the graph. Returns `done` with the counters and remarks of
// the merge added. If `done` is an error, returns this error and merges nothing.
Result<PassResult> with_gathers_merged(Graph& graph, bool across, Result<PassResult> done, PassContext& context);

// Marks `nodes` as forward. The nodes must not depend on backward values. Moves them before all
// backward nodes, so that backward stays one region for `remat`. A node stays in its place if it is
// not pure, if it has a control dependency, or if the move would change its result. Counter:
// into-forward. O(nodes + edges).
void move_to_forward(Graph& graph, Facts& facts, const std::vector<NodeId>& nodes, PassResult& result);

// Moves the nodes of Choice::into_forward to forward. Then calls remat_as_decided(), which copies
// into backward the values to recompute. With compat=fxopt, also merges gathers. Errors and
// complexity: those of remat_as_decided().
Result<PassResult> carry_out(Graph& graph, Choice choice, Compat compat, PassContext& context);

// Splits the joint graph as planned. If `orders_backward` is true, also puts backward into the
// order of autograd. With compat=fxopt, backward keeps its present order if that order has the
// lower peak. O(nodes log nodes + dependences).
void cut(Module& module, GraphId joint, const SplitPlan& plan, bool orders_backward, Compat compat,
         PassContext& context, PassResult& result);

// Applies `change` to a copy of the joint graph. If `is_cut` is true, also cuts the copy into
// forward and backward with compat=fxopt. Measures the peak of live bytes in the resulting step on
// each device, and returns the sum of these peaks. Symbols have the values of sizes_of_symbols().
// Returns nothing if a size is unknown. Errors: those of `change` and of plan_split(). O(size of
// the module), plus `change` and analyze_memory().
Result<std::optional<int64_t>> peak_after(const Graph& graph, bool is_cut, const PassContext& context,
                                          const std::function<Result<PassResult>(Graph&, PassContext&)>& change);

}  // namespace fxopt
