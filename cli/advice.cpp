#include "cli/advice.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "ir/cost/costs.h"
#include "ir/step/tags.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

// The cheapest policy comes first. The minimal cut recomputes only cheap operators, and needs a
// joint graph. The policies of `sac` recompute no matmul, every second matmul, or all matmuls.
constexpr std::string_view kPolicies[] = {"partition{mode=min-cut,cut=false}",
                                          "sac{policy=per-op,recompute-every=0},remat", "sac{policy=per-op},remat",
                                          "sac{policy=full},remat"};

bool has_recompute_tags(const Graph& graph) {
  const auto nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return wants_recompute(graph[node].tag); });
}

std::vector<std::string> policies_for(const Graph& graph) {
  std::vector<std::string> policies(std::begin(kPolicies), std::end(kPolicies));
  if (has_recompute_tags(graph)) policies.insert(policies.begin(), std::string(default_pipeline_text()));
  return policies;
}

bool holds(const DeviceFootprint& device, const AdviceGoal& goal) {
  if (const std::optional<Fit> fit = device.fit(goal.expandable); fit.has_value() && !fit->fits) return false;
  return std::all_of(goal.budgets.begin(), goal.budgets.end(), [&](const auto& budget) {
    const std::optional<FootprintPeak> peak = device.peak(budget.first, goal.expandable);
    return peak.has_value() && !peak->cut && peak->bytes <= budget.second;
  });
}

// Fills in the peaks before and after the advice. If the step fits but exceeds a budget, these are
// peaks of the metric of the budget. If the step does not fit, they are reserved peaks. If the
// advice does not reach the goal, the step with the advice may have no allocator peak, so they are
// peaks of requested bytes. Returns false if no peaks can be compared.
bool fill_peaks(const DeviceFootprint& measured, const DeviceFootprint& device, const AdviceGoal& goal,
                Advice& advice) {
  const std::optional<Fit> fit = measured.fit(goal.expandable);
  const bool runs_out = fit.has_value() && !fit->fits;
  const bool is_for_budget = !runs_out && !goal.budgets.empty();
  const MemoryMetric metric = is_for_budget  ? goal.budgets.front().first
                              : advice.holds ? MemoryMetric::kReserved
                                             : MemoryMetric::kRequested;
  const std::optional<FootprintPeak> before = measured.peak(metric, goal.expandable);
  const std::optional<FootprintPeak> after = device.peak(metric, goal.expandable);
  if (!after.has_value() || after->cut) return false;
  advice.metric = metric_name(metric);
  if (before.has_value() && !before->cut) advice.before = before->bytes;
  advice.after = after->bytes;
  if (const std::optional<Fit> then = device.fit(goal.expandable); advice.holds && then.has_value()) {
    advice.spare = then->spare;
    advice.is_certain = advice.is_certain && then->is_certain;
  }
  advice.is_for_budget = !runs_out;
  return true;
}

}  // namespace

std::vector<std::optional<Advice>> advise(const Footprint& footprint, MeasureOptions options, const CostSources& costs,
                                          const std::vector<AdviceGoal>& goals) {
  std::vector<std::optional<Advice>> best(goals.size());
  if (goals.empty()) return best;
  options.timelines = false;
  const Graph& original = *footprint.graph;
  const Cost before = CostTable(original, costs).all();
  for (const std::string& policy : policies_for(original)) {
    const Result<Pipeline> pipeline = parse_pipeline(policy);
    const std::unique_ptr<Module> copy = original.module().clone();
    if (!pipeline.ok() || !run_pipeline(*copy, *pipeline).ok()) continue;
    const Graph& graph = copy->graph(copy->find_graph(original.name()));
    const Footprint tried = measure(graph, options);
    const Cost after = CostTable(graph, costs).all();
    bool is_done = true;
    for (size_t i = 0; i < goals.size(); ++i) {
      if (best[i].has_value() && best[i]->holds) continue;
      const DeviceFootprint& measured = footprint.devices[goals[i].device];
      const auto device = std::find_if(tried.devices.begin(), tried.devices.end(),
                                       [&](const DeviceFootprint& each) { return each.device == measured.device; });
      Advice advice;
      advice.pipeline = policy;
      advice.holds = device != tried.devices.end() && holds(*device, goals[i]);
      advice.is_certain = tried.memory.unknown_buffers == 0;
      is_done = is_done && advice.holds;
      if (device == tried.devices.end() || !fill_peaks(measured, *device, goals[i], advice)) continue;
      advice.flops_before = before.flops;
      advice.flops_after = after.flops;
      advice.moved_before = before.bytes;
      advice.moved_after = after.bytes;
      const std::optional<int64_t> bar = best[i].has_value() ? best[i]->after : advice.before;
      if (advice.holds || (bar.has_value() && advice.after < *bar)) best[i] = std::move(advice);
    }
    if (is_done) break;
  }
  return best;
}

}  // namespace fxopt
