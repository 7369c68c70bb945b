#include "ir/memory/footprint.h"

#include <algorithm>
#include <utility>

#include "core/saturate.h"
#include "ir/alias/collectives.h"
#include "ir/alias/sizes.h"

namespace fxopt {
namespace {

constexpr std::string_view kMetricNames[kNumMemoryMetrics] = {"ideal",  "requested", "allocated",
                                                              "active", "reserved",  "arena"};

// Returns the first place with the largest value.
uint32_t place_of_peak(const std::vector<int64_t>& values) {
  return static_cast<uint32_t>(std::ranges::max_element(values) - values.begin());
}

FootprintPeak peak_of(const MemoryTrace& trace, const std::vector<int64_t>& values) {
  const uint32_t place = place_of_peak(values);
  return {values[place], trace.schedule[place]};
}

class Meter {
 public:
  Meter(const Footprint& footprint, const MeasureOptions& options)
      : graph_(*footprint.graph), footprint_(footprint), options_(options) {}

  DeviceFootprint measure(StringId device) const {
    DeviceFootprint result;
    result.device = device;
    const bool has_allocator = is_cuda(graph_.module().text(device));
    TraceOptions traced = options_.trace;
    if (!has_allocator) traced.profile = nullptr;
    result.has_profile = traced.profile != nullptr;
    result.trace = trace(device, traced);
    MemoryTimeline live = timeline_of(result.trace);
    result.ideal = peak_of(result.trace, live.ideal);
    result.requested = peak_of(result.trace, live.requested);
    result.place = place_of_peak(live.requested);
    if (!footprint_.ranges.symbols.empty()) {
      result.ideal_range = ideal_peak_range(footprint_.ranges, footprint_.storages, footprint_.memory, result.trace);
    }
    result.allocator_bytes = options_.device_bytes;
    if (result.has_profile) add_outside(*traced.profile, result);
    result.is_exact = is_exact(result);
    if (has_allocator) add_replays(result);
    result.arena = plan_arena(result.trace, options_.arena_effort);
    if (options_.timelines) add_timeline(std::move(live), traced, result);
    return result;
  }

 private:
  MemoryTrace trace(StringId device, const TraceOptions& traced) const {
    return trace_memory(graph_, footprint_.storages, footprint_.memory, device, options_.memory, traced);
  }

  bool is_exact(const DeviceFootprint& device) const {
    return footprint_.memory.unknown_buffers == 0 && device.trace.unknown_hidden.empty() &&
           std::ranges::all_of(device.outside, [](const OutsideBytes& each) { return each.bytes.has_value(); });
  }

  void add_replays(DeviceFootprint& result) const {
    ReplayOptions options = replay_options(result, options_);
    options.timeline = options_.timelines;
    for (const bool expandable : {false, true}) {
      options.config.expandable_segments = expandable;
      result.replays.push_back(replay_allocator(result.trace, options));
    }
  }

  // Fills the timeline of the measured step. If the allocator ran out of memory in the first step,
  // fills the timeline of the first step.
  void add_timeline(MemoryTimeline live, TraceOptions traced, DeviceFootprint& result) const {
    const std::optional<Fit> fit = result.fit(options_.allocator.expandable_segments);
    const bool ends_early = traced.steady.has_value() && fit.has_value() && !fit->fits && fit->step == 1;
    if (!ends_early) {
      result.timeline = {0, std::move(live), class_timelines(result.trace)};
      return;
    }
    traced.steady.reset();
    const MemoryTrace first = trace(result.device, traced);
    result.timeline = {1, timeline_of(first), class_timelines(first)};
  }

  // Adds the memory outside the allocator that the profile lists. Each process group of the graph's
  // collectives has one communicator.
  void add_outside(const DeviceProfile& profile, DeviceFootprint& result) const {
    for (const OutsideRow& row : profile.outside) {
      OutsideBytes added{&row, std::nullopt, 0};
      if (row.per_communicator) {
        add_communicators(profile, added, result.trace.schedule);
      } else {
        added.bytes = amount(profile.exprs.evaluate(row.bytes, profile.constants));
      }
      result.outside.push_back(added);
    }
    const std::optional<int64_t> has = profile.constant("device.memory");
    if (!has.has_value() || result.allocator_bytes.has_value()) return;
    result.device_bytes = has;
    result.allocator_bytes = std::max<int64_t>(0, *has - result.outside_bytes());
  }

  // A negative amount is treated as unknown.
  static std::optional<int64_t> amount(std::optional<int64_t> bytes) {
    return bytes.value_or(-1) < 0 ? std::nullopt : bytes;
  }

  void add_communicators(const DeviceProfile& profile, OutsideBytes& added, const std::vector<NodeId>& schedule) const {
    const StringId ranks = profile.strings.find("group.ranks");
    const SymbolValues symbols = symbol_values(graph_.module(), options_.memory.symbols);
    int64_t sum = 0;
    for (const GroupRow& group : collectives_by_group(graph_, schedule, symbols)) {
      ++added.communicators;
      SymbolValues values = profile.constants;
      if (group.group != nullptr && ranks.is_valid()) {
        values[ranks] = static_cast<int64_t>(group.group->ranks.size());
      }
      const std::optional<int64_t> bytes = amount(profile.exprs.evaluate(added.row->bytes, values));
      if (!bytes.has_value()) return;
      sum = saturating_add(sum, *bytes);
    }
    added.bytes = sum;
  }

  const Graph& graph_;
  const Footprint& footprint_;
  const MeasureOptions& options_;
};

}  // namespace

std::string_view metric_name(MemoryMetric metric) { return kMetricNames[static_cast<size_t>(metric)]; }

std::optional<MemoryMetric> find_metric(std::string_view name) {
  for (size_t i = 0; i < kNumMemoryMetrics; ++i) {
    if (kMetricNames[i] == name) return static_cast<MemoryMetric>(i);
  }
  return std::nullopt;
}

bool is_of_allocator(MemoryMetric metric) {
  return metric == MemoryMetric::kAllocated || metric == MemoryMetric::kActive || metric == MemoryMetric::kReserved;
}

bool is_cuda(std::string_view device) { return device == "cuda" || device.starts_with("cuda:"); }

std::optional<FootprintPeak> DeviceFootprint::peak(MemoryMetric metric, bool expandable) const {
  if (metric == MemoryMetric::kIdeal) return ideal;
  if (metric == MemoryMetric::kRequested) return requested;
  if (metric == MemoryMetric::kArena) {
    if (!arena.has_value()) return std::nullopt;
    return FootprintPeak{arena->bytes, requested.node};
  }
  if (replays.empty()) return std::nullopt;
  const AllocatorReplay& replay = replays[expandable ? 1 : 0];
  const ReplayPeak& found = metric == MemoryMetric::kAllocated ? replay.allocated
                            : metric == MemoryMetric::kActive  ? replay.active
                                                               : replay.reserved;
  return FootprintPeak{found.bytes, found.node, replay.out_of_memory.is_valid()};
}

std::optional<Fit> DeviceFootprint::fit(bool expandable) const {
  if (!allocator_bytes.has_value() || replays.empty()) return std::nullopt;
  const AllocatorReplay& replay = replays[expandable ? 1 : 0];
  Fit fit;
  fit.is_certain = is_exact;
  fit.fits = !replay.out_of_memory.is_valid();
  if (fit.fits) {
    fit.spare = *allocator_bytes - replay.reserved.bytes;
    return fit;
  }
  fit.node = replay.out_of_memory;
  fit.asked = replay.failed_bytes;
  fit.left = *allocator_bytes - replay.statistics.reserved_bytes[kAllPools].current;
  fit.step = replay.steps;
  return fit;
}

int64_t DeviceFootprint::outside_bytes() const {
  int64_t sum = 0;
  for (const OutsideBytes& each : outside) sum = saturating_add(sum, each.bytes.value_or(0));
  return sum;
}

ReplayOptions replay_options(const DeviceFootprint& device, const MeasureOptions& options) {
  ReplayOptions replay;
  replay.config = options.allocator;
  replay.steady = options.trace.steady.has_value();
  replay.device_bytes = device.allocator_bytes;
  if (device.device_bytes.has_value() && device.allocator_bytes.has_value()) {
    replay.device_bytes = device.device_bytes;
    replay.other_bytes = *device.device_bytes - *device.allocator_bytes;
  }
  return replay;
}

Footprint measure(const Graph& graph, const MeasureOptions& options) {
  Footprint result{&graph, resolve_phases(graph), StorageMap(graph), {}, {}, {}};
  result.memory = analyze_memory(graph, result.storages, options.memory, &result.phases);
  result.ranges = size_ranges(graph, result.storages, options.memory);
  const Meter meter(result, options);
  for (const DevicePeak& peak : result.memory.devices) {
    if (result.devices.size() == kMaxMeasuredDevices) break;
    result.devices.push_back(meter.measure(peak.device));
  }
  std::ranges::stable_sort(result.devices, [](const DeviceFootprint& a, const DeviceFootprint& b) {
    return a.requested.bytes > b.requested.bytes;
  });
  return result;
}

}  // namespace fxopt
