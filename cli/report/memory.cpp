#include "cli/report/memory.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cli/report/nodes.h"
#include "core/saturate.h"
#include "core/text.h"
#include "ir/analysis/collectives.h"
#include "ir/analysis/phases.h"
#include "ir/analysis/sizes.h"
#include "ir/analysis/storages.h"
#include "ir/analysis/values.h"
#include "ir/memory/candidates.h"
#include "ir/memory/ranges.h"
#include "ir/memory/replay.h"

namespace fxopt {
namespace {

constexpr std::string_view kMetricNames[kNumMemoryMetrics] = {"ideal",  "requested", "allocated",
                                                              "active", "reserved",  "arena"};
constexpr std::string_view kNoModule = "(no module)";

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('.'), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

bool is_number(std::string_view part) { return parse_int64(part).value_or(-1) >= 0; }

// Up to the first number: "layers.3". What belongs to no layer is one group.
std::string layer_group(std::string_view path) {
  std::vector<std::string> parts;
  for (const std::string_view part : components(path)) {
    parts.emplace_back(part);
    if (is_number(part)) return join(parts, ".");
  }
  return "(no layer)";
}

// Shares by name, each with the place of the first storage in it.
using Shares = std::map<std::string, std::pair<uint32_t, MemoryShare>>;

void add_share(Shares& shares, const std::string& name, uint32_t position, int64_t bytes) {
  auto& [first, share] = shares.try_emplace(name, position, MemoryShare{name, 0, 0}).first->second;
  first = std::min(first, position);
  share.bytes = saturating_add(share.bytes, bytes);
  ++share.storages;
}

// Largest first, ties by schedule position.
std::vector<MemoryShare> sorted_shares(const Shares& shares) {
  std::vector<std::pair<uint32_t, MemoryShare>> rows;
  for (const auto& [name, row] : shares) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.bytes != b.second.bytes ? a.second.bytes > b.second.bytes : a.first < b.first;
  });
  std::vector<MemoryShare> list;
  for (auto& [first, share] : rows) list.push_back(std::move(share));
  return list;
}

// The first place of the largest value.
uint32_t place_of_peak(const std::vector<int64_t>& values) {
  return static_cast<uint32_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

class Describer {
 public:
  Describer(const Graph& graph, const MemoryView& view)
      : graph_(graph),
        view_(view),
        phases_(resolve_phases(graph)),
        storages_(graph),
        report_(analyze_memory(graph, storages_, view.options)),
        ranges_(size_ranges(graph, storages_, view.options)) {}

  GraphMemory run() {
    GraphMemory memory;
    memory.graph = graph_.module().text(graph_.name());
    memory.nodes = graph_.num_nodes();
    memory.roles_derived = report_.roles_derived;
    memory.unknown = report_.unknown_buffers;
    memory.is_steady = view_.trace.steady.has_value();
    if (memory.is_steady) memory.steady = steady_text(*view_.trace.steady);
    memory.has_gradients = !report_.trained.empty();
    if (view_.trace.profile != nullptr) memory.profile = view_.trace.profile->name;
    for (const NodeId node : report_.unknown_nodes) memory.unknown_nodes.emplace_back(graph_.name_of(node));
    add_symbols(memory);
    memory.has_seconds = view_.work != nullptr && view_.work->bandwidth.has_value();
    if (view_.timelines) memory.schedule = schedule();
    for (const DevicePeak& peak : report_.devices) memory.devices.push_back(device(peak));
    std::stable_sort(memory.devices.begin(), memory.devices.end(),
                     [](const DeviceMemory& a, const DeviceMemory& b) { return a.bytes > b.bytes; });
    return memory;
  }

 private:
  static std::string steady_text(const SteadyState& steady) {
    const std::string_view optimizer = steady.optimizer == OptimizerState::kAdam       ? "adam"
                                       : steady.optimizer == OptimizerState::kMomentum ? "momentum"
                                                                                       : "no optimizer";
    return std::string(optimizer) + (steady.keep_gradients ? ", gradients kept" : ", gradients freed");
  }

  static std::optional<int64_t> end(bool exists, int64_t value) {
    return exists ? std::optional<int64_t>(value) : std::nullopt;
  }

  void add_symbols(GraphMemory& memory) const {
    for (const SizeSymbol& symbol : ranges_.symbols) {
      const ValueRange& range = symbol.range;
      memory.symbols.push_back({std::string(graph_.module().text(symbol.name)), symbol.value, symbol.is_hint,
                                end(range.has_min(), range.min), end(range.has_max(), range.max)});
    }
  }

  ScheduleTable schedule() const {
    const Module& module = graph_.module();
    ScheduleTable table;
    std::unordered_map<std::string_view, uint32_t> numbers;  // looked up only: the numbers follow the schedule
    const auto number = [&](std::string_view text) {
      const auto [at, is_new] = numbers.try_emplace(text, static_cast<uint32_t>(table.texts.size()));
      if (is_new) table.texts.emplace_back(text);
      return at->second;
    };
    for (const NodeId node : graph_.nodes()) {
      table.nodes.emplace_back(graph_.name_of(node));
      table.module_path.push_back(number(module.text(graph_[node].module_path)));
      table.phase.push_back(number(name_of(phases_.phase[node])));
      table.target.push_back(number(graph_[node].is_call() ? target_text(graph_, node) : name_of(graph_[node].kind)));
    }
    return table;
  }

  DeviceMemory device(const DevicePeak& peak) {
    const Module& module = graph_.module();
    DeviceMemory result;
    result.device = module.text(peak.device);
    const bool gpu = is_cuda(result.device);
    TraceOptions options = view_.trace;
    if (!gpu) options.profile = nullptr;
    trace_ = trace_memory(graph_, storages_, report_, peak.device, view_.options, options);
    MemoryTimeline timeline = timeline_of(trace_);
    result.ideal = peak_row(timeline.ideal);
    result.requested = peak_row(timeline.requested);
    if (!ranges_.symbols.empty()) result.ideal_range = ideal_peak_range(ranges_, storages_, report_, trace_);
    result.allocator_bytes = view_.device_bytes;
    result.model = options.profile != nullptr ? "requested" : "ideal";
    describe_peak(place_of_peak(timeline.requested), result);
    count_hidden(result);
    if (options.profile != nullptr) add_outside(*options.profile, result);
    if (gpu) add_allocator(result);
    add_arena(result);
    if (view_.timelines) {
      result.class_at = class_timelines(trace_);
      result.ideal_at = std::move(timeline.ideal);
      result.requested_at = std::move(timeline.requested);
    }
    return result;
  }

  PeakRow peak_row(const std::vector<int64_t>& values) const {
    const uint32_t place = place_of_peak(values);
    return {values[place], std::string(graph_.name_of(trace_.schedule[place]))};
  }

  void describe_peak(uint32_t place, DeviceMemory& result) const {
    const Module& module = graph_.module();
    const NodeId node = trace_.schedule[place];
    result.node = graph_.name_of(node);
    result.position = place;
    result.module_path = module.text(graph_[node].module_path);
    result.source = source_text(graph_, node);
    for (const uint32_t block : trace_.initial) {
      result.input_bytes = saturating_add(result.input_bytes, trace_.blocks[block].bytes);
    }
    Shares classes, modules, layers;
    const std::vector<uint32_t> live = live_blocks(trace_, place);
    for (const uint32_t number : live) {
      const TraceBlock& block = trace_.blocks[number];
      const std::string_view path = module_of(graph_, block.node);
      result.bytes = saturating_add(result.bytes, block.bytes);
      const uint32_t place_of_node = graph_.position(block.node);
      add_share(classes, std::string(memory_class_name(block.kind)), place_of_node, block.bytes);
      add_share(modules, module_group(path, view_.module_depth), place_of_node, block.bytes);
      add_share(layers, layer_group(path), place_of_node, block.bytes);
      if (result.top.size() < view_.top) result.top.push_back(row(block));
    }
    if (view_.others) add_others(live, result);
    if (view_.work != nullptr) add_candidates(place, result);
    result.live = live.size();
    result.by_class = sorted_shares(classes);
    result.by_module = sorted_shares(modules);
    result.by_layer = sorted_shares(layers);
  }

  void add_candidates(uint32_t place, DeviceMemory& result) const {
    WorkModel work(graph_, *view_.work, view_.options.symbols);
    std::map<std::tuple<std::string, std::string, int64_t>, size_t> rows;  // by target, module and bytes
    for (const RecomputeCandidate& candidate :
         recompute_candidates(graph_, storages_, phases_, report_, trace_.device, place, work)) {
      const std::string target(target_text(graph_, candidate.node));
      const std::string path = module_group(module_of(graph_, candidate.node), SIZE_MAX);
      const auto [at, is_new] = rows.try_emplace({target, path, candidate.gain()}, result.recompute.size());
      if (is_new && result.recompute.size() == view_.top) {
        rows.erase(at);
        continue;
      }
      if (is_new) result.recompute.push_back({{}, target, path, 0, {}});
      RecomputeRow& row = result.recompute[at->second];
      row.nodes.emplace_back(graph_.name_of(candidate.node));
      row.bytes = saturating_add(row.bytes, candidate.gain());
      row.work.add(candidate.work);
    }
  }

  void add_others(const std::vector<uint32_t>& live, DeviceMemory& result) const {
    std::vector<bool> is_live(trace_.blocks.size(), false);
    for (const uint32_t number : live) is_live[number] = true;
    for (size_t i = 0; i < trace_.blocks.size(); ++i) {
      if (!is_live[i]) result.others.push_back(row(trace_.blocks[i]));
    }
    std::stable_sort(result.others.begin(), result.others.end(),
                     [](const StorageRow& a, const StorageRow& b) { return a.first_place < b.first_place; });
  }

  StorageRow row(const TraceBlock& block) const {
    const Node& node = graph_[block.node];
    StorageRow row;
    row.node = graph_.name_of(block.node);
    row.label = block.label;
    row.module_path = module_of(graph_, block.node);
    if (block.buffer.is_valid() && storages_.buffer(block.buffer).value.is_valid()) {
      row.type = value_text(graph_, graph_.pool().value(storages_.buffer(block.buffer).value));
    }
    if (node.is_call()) row.target = target_text(graph_, block.node);
    row.source = source_text(graph_, block.node);
    const NodeExtra* extra = graph_.extra(block.node);
    if (extra != nullptr && extra->input.has_value()) row.fqn = graph_.module().text(extra->input->fqn);
    row.phase = name_of(phases_.phase[block.node]);
    row.kind = memory_class_name(block.kind);
    row.bytes = block.bytes;
    row.first = graph_.name_of(trace_.schedule[block.first]);
    row.last = graph_.name_of(trace_.schedule[block.last]);
    row.first_place = block.first;
    row.last_place = block.last;
    return row;
  }

  void count_hidden(DeviceMemory& result) const {
    if (view_.trace.profile == nullptr) return;
    for (const TraceBlock& block : trace_.blocks) {
      if (!block.is_hidden()) continue;
      ++result.hidden_rows;
      if (block.evidence == Evidence::kEstimate) ++result.hidden_estimates;
    }
    for (const NodeId node : trace_.unknown_hidden) result.unknown_hidden.emplace_back(graph_.name_of(node));
  }

  void add_allocator(DeviceMemory& result) const {
    ReplayOptions options = replay_options(result, view_);
    options.timeline = view_.timelines;
    for (const bool expandable : {false, true}) {
      options.config.expandable_segments = expandable;
      AllocatorReplay replay = replay_allocator(trace_, options);
      const auto peak = [this](const ReplayPeak& at) {
        return PeakRow{at.bytes, at.node.is_valid() ? std::string(graph_.name_of(at.node)) : ""};
      };
      AllocatorRow& added = result.allocator.emplace_back();
      added.segments = expandable ? "expandable" : "classic";
      added.requested = peak(replay.requested);
      added.allocated = peak(replay.allocated);
      added.active = peak(replay.active);
      added.reserved = peak(replay.reserved);
      if (replay.out_of_memory.is_valid()) added.out_of_memory = graph_.name_of(replay.out_of_memory);
      added.failed_bytes = replay.failed_bytes;
      added.steps = replay.steps;
      added.is_steady = !options.steady || replay.is_steady;
      added.allocated_at = std::move(replay.allocated_at);
      added.reserved_at = std::move(replay.reserved_at);
    }
  }

  void add_arena(DeviceMemory& result) const {
    const std::optional<ArenaPlan> plan = plan_arena(trace_, view_.arena_effort);
    if (!plan.has_value()) return;
    result.arena = ArenaRow{plan->bytes, plan->lower_bound, std::string(plan->method), plan->optimal};
  }

  // Less than nothing is no amount.
  static std::optional<int64_t> amount(std::optional<int64_t> bytes) {
    return bytes.value_or(-1) < 0 ? std::nullopt : bytes;
  }

  // What the profile says of memory outside, with one communicator for each group that collectives run on.
  void add_outside(const DeviceProfile& profile, DeviceMemory& result) const {
    for (const OutsideRow& row : profile.outside) {
      OutsideMemory added{row.name, 0, std::string(evidence_name(row.evidence)), 0};
      if (!row.per_communicator) {
        added.bytes = amount(profile.exprs.evaluate(row.bytes, profile.constants));
      } else {
        add_communicators(profile, row, added);
      }
      result.outside.push_back(std::move(added));
    }
    const std::optional<int64_t> has = profile.constant("device.memory");
    if (!has.has_value() || result.allocator_bytes.has_value()) return;
    result.device_bytes = has;
    result.allocator_bytes = std::max<int64_t>(0, *has - result.outside_bytes());
  }

  void add_communicators(const DeviceProfile& profile, const OutsideRow& row, OutsideMemory& added) const {
    const StringId ranks = profile.strings.find("group.ranks");
    for (const GroupRow& group : collectives_by_group(graph_, trace_.schedule, symbols())) {
      ++added.communicators;
      SymbolValues values = profile.constants;
      if (group.group != nullptr && ranks.is_valid()) {
        values[ranks] = static_cast<int64_t>(group.group->ranks.size());
      }
      const std::optional<int64_t> bytes = amount(profile.exprs.evaluate(row.bytes, values));
      if (!bytes.has_value()) {
        added.bytes = std::nullopt;
        return;
      }
      added.bytes = saturating_add(*added.bytes, *bytes);
    }
  }

  SymbolValues symbols() const { return symbol_values(graph_.module(), view_.options.symbols); }

  const Graph& graph_;
  const MemoryView& view_;
  PhaseMap phases_;
  StorageMap storages_;
  MemoryReport report_;
  SizeRanges ranges_;
  MemoryTrace trace_;  // of the device at hand
};

}  // namespace

std::string module_group(std::string_view path, size_t depth) {
  std::vector<std::string> parts;
  for (const std::string_view part : components(path)) {
    if (parts.size() < depth) parts.emplace_back(is_number(part) ? "*" : part);
  }
  return parts.empty() ? std::string(kNoModule) : join(parts, ".");
}

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

std::optional<PeakRow> DeviceMemory::peak(MemoryMetric metric, bool expandable) const {
  if (metric == MemoryMetric::kIdeal) return ideal;
  if (metric == MemoryMetric::kRequested) return requested;
  if (metric == MemoryMetric::kArena) {
    if (!arena.has_value()) return std::nullopt;
    return PeakRow{arena->bytes, node};
  }
  if (allocator.size() != 2) return std::nullopt;
  const AllocatorRow& run = allocator[expandable ? 1 : 0];
  PeakRow peak = metric == MemoryMetric::kAllocated ? run.allocated
                 : metric == MemoryMetric::kActive  ? run.active
                                                    : run.reserved;
  peak.cut = !run.out_of_memory.empty();
  return peak;
}

ReplayOptions replay_options(const DeviceMemory& device, const MemoryView& view) {
  ReplayOptions options;
  options.config = view.allocator;
  options.steady = view.trace.steady.has_value();
  options.device_bytes = device.allocator_bytes;
  if (device.device_bytes.has_value() && device.allocator_bytes.has_value()) {
    options.device_bytes = device.device_bytes;
    options.other_bytes = *device.device_bytes - *device.allocator_bytes;
  }
  return options;
}

int64_t DeviceMemory::outside_bytes() const {
  int64_t sum = 0;
  for (const OutsideMemory& row : outside) sum = saturating_add(sum, row.bytes.value_or(0));
  return sum;
}

std::vector<MemoryShare> fold_shares(const std::vector<MemoryShare>& shares) {
  std::vector<MemoryShare> folded;
  for (size_t i = 0; i < shares.size();) {
    size_t end = i + 1;
    MemoryShare row = shares[i];
    for (; end < shares.size() && shares[end].bytes == shares[i].bytes && shares[end].storages == shares[i].storages;
         ++end) {
      row.bytes = saturating_add(row.bytes, shares[end].bytes);
      row.storages += shares[end].storages;
    }
    if (end - i > 2) {
      row.name += " .. " + shares[end - 1].name + " (" + std::to_string(end - i) + " alike)";
    } else {
      end = i + 1;
      row = shares[i];
    }
    folded.push_back(std::move(row));
    i = end;
  }
  return folded;
}

GraphMemory describe_memory(const Graph& graph, const MemoryView& view) { return Describer(graph, view).run(); }

}  // namespace fxopt
