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

std::vector<std::string> policies_for(const Graph& graph) {
  std::vector<std::string> policies(std::begin(kPolicies), std::end(kPolicies));
  if (has_recompute_tags(graph)) policies.insert(policies.begin(), std::string(default_pipeline_text()));
  return policies;
}

Work work_of(const Graph& graph, const DeviceProfile& profile, const SymbolValues& symbols) {
  WorkModel model(graph, profile, symbols);
  Work sum;
  for (const NodeId node : graph.nodes()) sum.add(model.of(node));
  return sum;
}

bool holds(const DeviceFootprint& device, const AdviceGoal& goal) {
  if (const std::optional<Fit> fit = device.fit(goal.expandable); fit.has_value() && !fit->fits) return false;
  return std::all_of(goal.budgets.begin(), goal.budgets.end(), [&](const auto& budget) {
    const std::optional<FootprintPeak> peak = device.peak(budget.first, goal.expandable);
    return peak.has_value() && !peak->cut && peak->bytes <= budget.second;
  });
}

// Of the peak that was too high: a budget's, or the reserved one. A run that ends early has none of the allocator's, so
// that without success the requested peaks are compared then. False where there is nothing to compare.
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
    advice.is_certain = then->is_certain;
  }
  advice.is_for_budget = !runs_out;
  return true;
}

}  // namespace

struct Adviser::Trial {
  std::unique_ptr<Module> module;  // null where the pipeline cannot be run on the graph
  std::optional<Footprint> footprint;
  Work work;
};

Adviser::Adviser(const Footprint& footprint, const MeasureOptions& options, const DeviceProfile& work)
    : footprint_(footprint), options_(options), profile_(work), policies_(policies_for(*footprint.graph)) {
  options_.timelines = false;
}

Adviser::~Adviser() = default;

const Adviser::Trial& Adviser::trial(size_t policy) {
  if (policy < trials_.size()) return *trials_[policy];
  Trial& added = *trials_.emplace_back(std::make_unique<Trial>());
  const Result<Pipeline> pipeline = parse_pipeline(policies_[policy]);
  std::unique_ptr<Module> copy = footprint_.graph->module().clone();
  if (!pipeline.ok() || !run_pipeline(*copy, *pipeline).ok()) return added;
  added.module = std::move(copy);
  const Graph& graph = added.module->graph(added.module->find_graph(footprint_.graph->name()));
  added.footprint = measure(graph, options_);
  added.work = work_of(graph, profile_, options_.memory.symbols);
  return added;
}

std::optional<Advice> Adviser::advise(const DeviceFootprint& measured, const AdviceGoal& goal) {
  if (!work_.has_value()) work_ = work_of(*footprint_.graph, profile_, options_.memory.symbols);
  std::optional<Advice> best;
  for (size_t i = 0; i < policies_.size(); ++i) {
    const Trial& tried = trial(i);
    if (tried.module == nullptr) continue;
    const std::vector<DeviceFootprint>& devices = tried.footprint->devices;
    const auto device = std::find_if(devices.begin(), devices.end(), [&measured](const DeviceFootprint& each) {
      return each.device == measured.device;
    });
    if (device == devices.end()) continue;
    Advice advice;
    advice.pipeline = policies_[i];
    advice.holds = holds(*device, goal);
    if (!fill_peaks(measured, *device, goal, advice)) continue;
    advice.flops_before = work_->flops;
    advice.flops_after = tried.work.flops;
    advice.moved_before = work_->bytes;
    advice.moved_after = tried.work.bytes;
    if (advice.holds) return advice;
    const std::optional<int64_t> bar = best.has_value() ? best->after : advice.before;
    if (bar.has_value() && advice.after < *bar) best = std::move(advice);
  }
  return best;
}

}  // namespace fxopt
