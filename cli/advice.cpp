#include "cli/advice.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "ir/analysis/tags.h"
#include "ir/device/work.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

// Without a matmul, with every second one, with all: the cheapest first.
constexpr std::string_view kPolicies[] = {"sac{policy=per-op,recompute-every=0},remat", "sac{policy=per-op},remat",
                                          "sac{policy=full},remat"};

bool has_recompute_tags(const Graph& graph) {
  const auto nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return wants_recompute(graph[node].tag); });
}

class Adviser {
 public:
  Adviser(const Footprint& footprint, const DeviceFootprint& measured, const MeasureOptions& options,
          const DeviceProfile& work, const AdviceGoal& goal)
      : footprint_(footprint), measured_(measured), options_(options), work_(work), goal_(goal) {
    options_.timelines = false;
  }

  std::optional<Advice> run() const {
    std::optional<Advice> best;
    std::vector<std::string_view> policies(std::begin(kPolicies), std::end(kPolicies));
    if (has_recompute_tags(*footprint_.graph)) policies.insert(policies.begin(), default_pipeline_text());
    const Work before = work_of(*footprint_.graph);
    for (const std::string_view policy : policies) {
      std::optional<Advice> tried = attempt(std::string(policy), before);
      if (!tried.has_value()) continue;
      if (tried->holds) return tried;
      const std::optional<int64_t> bar = best.has_value() ? best->after : tried->before;
      if (bar.has_value() && tried->after < *bar) best = std::move(tried);
    }
    return best;
  }

 private:
  // Nothing where the pipeline cannot be run on the graph.
  std::optional<Advice> attempt(const std::string& text, const Work& before) const {
    const Result<Pipeline> pipeline = parse_pipeline(text);
    const std::unique_ptr<Module> copy = footprint_.graph->module().clone();
    if (!pipeline.ok() || !run_pipeline(*copy, *pipeline).ok()) return std::nullopt;
    const Graph& graph = copy->graph(copy->find_graph(footprint_.graph->name()));
    const Footprint footprint = measure(graph, options_);
    for (const DeviceFootprint& device : footprint.devices) {
      if (device.device != measured_.device) continue;
      Advice advice;
      advice.pipeline = text;
      advice.holds = holds(device);
      fill_peaks(device, advice);
      const Work after = work_of(graph);
      advice.flops_before = before.flops;
      advice.flops_after = after.flops;
      advice.moved_before = before.bytes;
      advice.moved_after = after.bytes;
      return advice;
    }
    return std::nullopt;
  }

  bool holds(const DeviceFootprint& device) const {
    if (const std::optional<Fit> fit = device.fit(goal_.expandable); fit.has_value() && !fit->fits) return false;
    return std::all_of(goal_.budgets.begin(), goal_.budgets.end(), [&](const auto& budget) {
      const std::optional<FootprintPeak> peak = device.peak(budget.first, goal_.expandable);
      return peak.has_value() && !peak->cut && peak->bytes <= budget.second;
    });
  }

  // Of the peak that was too high: a budget's, or the reserved one. A run that ends early has none of the allocator's,
  // so that without success the requested peaks are compared then.
  void fill_peaks(const DeviceFootprint& device, Advice& advice) const {
    const std::optional<Fit> fit = measured_.fit(goal_.expandable);
    const bool runs_out = fit.has_value() && !fit->fits;
    const bool is_for_budget = !runs_out && !goal_.budgets.empty();
    const MemoryMetric metric = is_for_budget  ? goal_.budgets.front().first
                                : advice.holds ? MemoryMetric::kReserved
                                               : MemoryMetric::kRequested;
    const std::optional<FootprintPeak> before = measured_.peak(metric, goal_.expandable);
    const std::optional<FootprintPeak> after = device.peak(metric, goal_.expandable);
    advice.metric = metric_name(metric);
    if (before.has_value() && !before->cut) advice.before = before->bytes;
    if (after.has_value()) advice.after = after->bytes;
    if (const std::optional<Fit> then = device.fit(goal_.expandable); advice.holds && then.has_value()) {
      advice.spare = then->spare;
      advice.is_certain = then->is_certain;
    }
    advice.is_for_budget = !runs_out;
  }

  Work work_of(const Graph& graph) const {
    WorkModel model(graph, work_, options_.memory.symbols);
    Work sum;
    for (const NodeId node : graph.nodes()) sum.add(model.of(node));
    return sum;
  }

  const Footprint& footprint_;
  const DeviceFootprint& measured_;
  MeasureOptions options_;
  const DeviceProfile& work_;
  const AdviceGoal& goal_;
};

}  // namespace

std::optional<Advice> advise(const Footprint& footprint, const DeviceFootprint& measured, const MeasureOptions& options,
                             const DeviceProfile& work, const AdviceGoal& goal) {
  return Adviser(footprint, measured, options, work, goal).run();
}

}  // namespace fxopt
