#include "passes/partition/carry_out.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/saturate.h"
#include "ir/memory/memory.h"
#include "ir/step/compose.h"
#include "ir/step/marks.h"
#include "ir/step/phases.h"
#include "ir/step/step.h"
#include "passes/clean/gathers.h"
#include "passes/partition/backward_order.h"
#include "passes/recompute/remat.h"

namespace fxopt {

void move_to_forward(Graph& graph, Facts& facts, const std::vector<NodeId>& nodes, PassResult& result) {
  if (nodes.empty()) return;
  IdMap<NodeId, bool> is_put(graph.num_ids(), false);
  for (const NodeId node : nodes) is_put[node] = true;
  const PhaseMap& phases = facts.phases();
  const StorageMap& storages = facts.storages();
  NodeId begin;
  std::vector<NodeId> moved;
  IdMap<NodeId, bool> is_before(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) {
    if (!begin.is_valid() && graph[node].runs() && phases.is_backward(node) && !is_put.get(node)) begin = node;
    if (!begin.is_valid()) is_before[node] = true;
    if (!begin.is_valid() || !is_put.get(node) || !graph.op(node).is_pure()) continue;
    bool can_move =
        !storages.input_bytes_change(node, begin, node) && !storages.input_metadata_changes(node, begin, node);
    graph.for_each_input(node, [&](NodeId input) { can_move = can_move && is_before.get(input); });
    const NodeExtra* extra = graph.extra(node);
    if (!can_move || (extra != nullptr && !extra->control.empty())) continue;
    is_before[node] = true;
    moved.push_back(node);
  }
  for (const NodeId node : moved) graph.move_before(node, begin);
  for (const NodeId node : nodes) {
    // A mark on a backward node is ignored, so it must not take effect in forward.
    if (graph[node].phase == Phase::kBackward) strip_mark(graph, node);
    graph[node].phase = Phase::kForward;
    graph[node].phase_markers = marker_bit(PhaseMarker::kIsForward);
  }
  result.count("into-forward", static_cast<int64_t>(nodes.size() + mark_rest_of_forward(graph, phases)));
  facts.forget();
}

Result<PassResult> with_gathers_merged(Graph& graph, bool across, Result<PassResult> done, PassContext& context) {
  if (!done.ok()) return done;
  if (done->changed()) {
    graph.prune_control();
    context.facts.of(graph).forget();
  }
  Result<PassResult> merged = merge_gathers(graph, across, context, "partition");
  if (!merged.ok()) return merged;
  done->merge(std::move(*merged));
  if (across) remark_gathers_apart(graph, context.facts.of(graph), *done);
  return done;
}

Result<PassResult> carry_out(Graph& graph, Choice choice, Compat compat, PassContext& context) {
  PassResult moved;
  move_to_forward(graph, context.facts.of(graph), choice.into_forward, moved);
  Result<PassResult> result = remat_as_decided(graph, std::move(choice.decisions), context, "partition");
  if (result.ok()) result->merge(std::move(moved));
  return compat == Compat::kTorch ? std::move(result) : with_gathers_merged(graph, true, std::move(result), context);
}

void cut(Module& module, GraphId joint, const SplitPlan& plan, bool orders_backward, Compat compat,
         PassContext& context, PassResult& result) {
  const GraphId backward = split(module, joint, plan, result);
  context.facts.forget();
  if (!orders_backward) return;
  Graph& graph = module.graph(backward);
  order_backward(graph, context.facts.of(graph), compat != Compat::kTorch, result);
}

Result<std::optional<int64_t>> peak_after(const Graph& graph, bool is_cut, const PassContext& context,
                                          const std::function<Result<PassResult>(Graph&, PassContext&)>& change) {
  const std::unique_ptr<Module> copy = graph.module().clone();
  PassContext trial(*copy);
  trial.measure = context.measure;
  trial.costs = context.costs;
  const Result<PassResult> changed = change(copy->graph(graph.id()), trial);
  if (!changed.ok()) return changed.error();
  GraphId whole = graph.id();
  copy->graph(whole).prune_control();
  trial.facts.forget();
  if (is_cut) {
    const Result<SplitPlan> plan =
        plan_split(copy->graph(whole), trial.facts.of(copy->graph(whole)), SplitFor::kTraining);
    if (!plan.ok()) return plan.error();
    PassResult ignored;
    cut(*copy, whole, *plan, true, Compat::kFxopt, trial, ignored);
    const Result<Step> step = find_step(*copy);
    if (!step.ok()) return step.error();
    whole = compose_step(*copy, *step);
  }
  ModuleFacts facts(*copy);
  Facts& known = facts.of(copy->graph(whole));
  MemoryOptions options = context.measure.memory;
  options.symbols = sizes_of_symbols(*copy, options.symbols);
  const MemoryReport report = analyze_memory(copy->graph(whole), known.storages(), options, &known.phases());
  if (report.unknown_buffers > 0) return std::optional<int64_t>();
  int64_t sum = 0;
  for (const DevicePeak& device : report.devices) sum = saturating_add(sum, device.bytes);
  return std::optional<int64_t>(sum);
}

}  // namespace fxopt
