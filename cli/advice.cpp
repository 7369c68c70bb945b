#include "cli/advice.h"

#include <algorithm>
#include <memory>

#include "ir/device/work.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

// The cheapest first.
constexpr std::string_view kPolicies[] = {"sac{policy=per-op},remat", "sac{policy=full},remat"};

class Adviser {
 public:
  Adviser(const Footprint& footprint, const DeviceFootprint& measured, const MeasureOptions& options,
          const DeviceProfile& work, const AdviceGoal& goal)
      : footprint_(footprint), measured_(measured), options_(options), work_(work), goal_(goal) {
    options_.timelines = false;
  }

  std::optional<Advice> run() const {
    std::optional<Advice> best;
    const std::string first = footprint_.phases.has_markers ? "" : "infer-phase,";
    for (const std::string_view policy : kPolicies) {
      std::optional<Advice> tried = attempt(first + std::string(policy));
      if (!tried.has_value()) continue;
      if (tried->holds) return tried;
      const int64_t bar = best.has_value() ? best->after : measured_.requested.bytes;
      if (tried->after < bar) best = std::move(tried);
    }
    return best;
  }

 private:
  // Nothing where the pipeline cannot be run on the graph.
  std::optional<Advice> attempt(const std::string& text) const {
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
      advice.flops_before = flops(*footprint_.graph);
      advice.flops_after = flops(graph);
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
  // so that without success the requested peaks are compared.
  void fill_peaks(const DeviceFootprint& device, Advice& advice) const {
    const std::optional<Fit> fit = measured_.fit(goal_.expandable);
    const bool runs_out = fit.has_value() && !fit->fits;
    const MemoryMetric metric = !advice.holds                       ? MemoryMetric::kRequested
                                : runs_out || goal_.budgets.empty() ? MemoryMetric::kReserved
                                                                    : goal_.budgets.front().first;
    const std::optional<FootprintPeak> before = measured_.peak(metric, goal_.expandable);
    const std::optional<FootprintPeak> after = device.peak(metric, goal_.expandable);
    advice.metric = metric_name(metric);
    if (before.has_value() && !before->cut) advice.before = before->bytes;
    if (after.has_value()) advice.after = after->bytes;
    if (const std::optional<Fit> then = device.fit(goal_.expandable); advice.holds && then.has_value()) {
      advice.spare = then->spare;
    }
  }

  int64_t flops(const Graph& graph) const {
    WorkModel model(graph, work_, options_.memory.symbols);
    Work sum;
    for (const NodeId node : graph.nodes()) sum.add(model.of(node));
    return sum.flops;
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
