#include "cli/report/memory/report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cli/print/nodes.h"
#include "cli/print/table.h"
#include "core/saturate.h"
#include "core/text.h"
#include "ir/alias/collective_table.h"
#include "ir/memory/candidates.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

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

// Returns the path up to its first number: "layers.3". Paths without a number form one group.
std::string layer_group(std::string_view path) {
  std::vector<std::string> parts;
  for (const std::string_view part : components(path)) {
    parts.emplace_back(part);
    if (is_number(part)) return join(parts, ".");
  }
  return "(no layer)";
}

// Shares by name, each with the schedule position of its first storage.
using Shares = std::map<std::string, std::pair<uint32_t, MemoryShare>>;

void add_share(Shares& shares, const std::string& name, uint32_t position, int64_t bytes) {
  auto& [first, share] = shares.try_emplace(name, position, MemoryShare{name, 0, 0}).first->second;
  first = std::min(first, position);
  share.bytes = saturating_add(share.bytes, bytes);
  ++share.storages;
}

// Returns the shares, largest first. Equal shares are in schedule order.
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

class Describer {
 public:
  Describer(const Footprint& footprint, const MemoryView& view)
      : graph_(*footprint.graph),
        footprint_(footprint),
        view_(view),
        texts_(view.texts != nullptr ? view.texts : std::make_shared<Interner>()),
        lister_(footprint, *texts_) {}

  GraphMemory run() {
    const MemoryReport& report = footprint_.memory;
    GraphMemory memory;
    memory.graph = graph_.module().text(graph_.name());
    memory.nodes = graph_.num_nodes();
    memory.roles_derived = report.roles_derived;
    memory.resized = report.resized.size();
    memory.unknown = report.unknown_buffers;
    memory.is_steady = view_.measure.trace.steady.has_value();
    if (memory.is_steady) {
      memory.steady = footprint_.memory.trained.empty() ? "no gradients and no optimizer state added"
                                                        : steady_text(*view_.measure.trace.steady);
    }
    if (view_.measure.trace.profile != nullptr) memory.profile = view_.measure.trace.profile->name;
    for (const NodeId node : report.unknown_nodes) memory.unknown_nodes.push_back(name(node));
    memory.symbols = symbol_rows(footprint_);
    memory.has_seconds = view_.costs.has_seconds();
    memory.is_measured = view_.costs.measurement != nullptr;
    if (view_.measure.timelines) memory.schedule = schedule();
    for (const DeviceFootprint& each : footprint_.devices) memory.devices.push_back(device(each));
    return memory;
  }

 private:
  static std::string steady_text(const SteadyState& steady) {
    const std::string_view optimizer = steady.optimizer == OptimizerState::kAdam       ? "adam"
                                       : steady.optimizer == OptimizerState::kMomentum ? "momentum"
                                                                                       : "no optimizer";
    return std::string(optimizer) + (steady.keep_gradients ? ", gradients kept" : ", gradients freed");
  }

  std::string name(NodeId node) const { return node.is_valid() ? std::string(graph_.name_of(node)) : ""; }

  ScheduleTable schedule() const {
    const Module& module = graph_.module();
    ScheduleTable table;
    std::unordered_map<std::string_view, uint32_t> numbers;  // never iterated
    const auto number = [&](std::string_view text) {
      const auto [at, is_new] = numbers.try_emplace(text, static_cast<uint32_t>(table.texts.size()));
      if (is_new) table.texts.emplace_back(text);
      return at->second;
    };
    for (const NodeId node : graph_.nodes()) {
      table.nodes.emplace_back(graph_.name_of(node));
      table.module_path.push_back(number(module.text(graph_[node].module_path)));
      table.phase.push_back(number(name_of(footprint_.phases.phase[node])));
      table.target.push_back(number(graph_[node].is_call() ? target_text(graph_, node) : name_of(graph_[node].kind)));
    }
    return table;
  }

  DeviceMemory device(const DeviceFootprint& measured) {
    DeviceMemory result;
    result.device = graph_.module().text(measured.device);
    result.ideal = row(measured.ideal);
    result.requested = row(measured.requested);
    result.ideal_range = measured.ideal_range;
    result.device_bytes = measured.device_bytes;
    result.allocator_bytes = measured.allocator_bytes;
    result.model = measured.has_profile ? "requested" : "ideal";
    describe_peak(measured, result);
    count_hidden(measured, result);
    for (const OutsideBytes& each : measured.outside) {
      result.outside.push_back(
          {each.row->name, each.bytes, std::string(name_of(each.row->evidence)), each.communicators});
    }
    for (size_t i = 0; i < measured.replays.size(); ++i) {
      result.allocator.push_back(row(measured.replays[i], i == 1));
      AllocatorRow& added = result.allocator.back();
      const bool is_first = measured.trace.is_steady && !added.out_of_memory.empty() && added.steps == 1;
      if (is_first != (measured.timeline.step == 1)) {  // the row is not about the drawn step
        added.allocated_at.clear();
        added.reserved_at.clear();
      }
    }
    add_fit(measured, result);
    if (const std::optional<ArenaPlan>& plan = measured.arena; plan.has_value()) {
      result.arena = ArenaRow{plan->bytes, plan->lower_bound, std::string(plan->method), plan->optimal};
    }
    if (view_.measure.timelines) {
      result.drawn_step = measured.timeline.step;
      result.class_at = measured.timeline.by_class;
      result.ideal_at = measured.timeline.live.ideal;
      result.requested_at = measured.timeline.live.requested;
    }
    return result;
  }

  PeakRow row(const FootprintPeak& peak) const { return {peak.bytes, name(peak.node), peak.cut}; }

  void describe_peak(const DeviceFootprint& measured, DeviceMemory& result) {
    const Module& module = graph_.module();
    const MemoryTrace& trace = measured.trace;
    const NodeId node = trace.schedule[measured.place];
    result.node = graph_.name_of(node);
    result.position = measured.place;
    result.module_path = module.text(graph_[node].module_path);
    result.source = source_text(graph_, node);
    for (const uint32_t block : trace.initial) {
      result.input_bytes = saturating_add(result.input_bytes, trace.blocks[block].bytes);
    }
    Shares classes, modules, layers;
    const std::vector<uint32_t> live = live_blocks(trace, measured.place);
    for (const uint32_t number : live) {
      const TraceBlock& block = trace.blocks[number];
      const std::string_view path = module_of(graph_, block.node);
      result.bytes = saturating_add(result.bytes, block.bytes);
      const uint32_t place_of_node = graph_.position(block.node);
      add_share(classes, std::string(memory_class_name(block.kind)), place_of_node, block.bytes);
      add_share(modules, module_group(path, view_.module_depth), place_of_node, block.bytes);
      add_share(layers, layer_group(path), place_of_node, block.bytes);
    }
    list_storages(trace, live, result);
    if (view_.candidates) add_candidates(measured, result);
    result.live = live.size();
    result.by_class = sorted_shares(classes);
    result.by_module = sorted_shares(modules);
    result.by_layer = sorted_shares(layers);
    add_buckets(trace, live, result);
  }

  void add_buckets(const MemoryTrace& trace, const std::vector<uint32_t>& live, DeviceMemory& result) const {
    std::map<NodeId, size_t> made_by;
    std::vector<BucketRow> rows;
    for (const CollectiveBucket& bucket : find_buckets(graph_)) {
      for (const NodeId node : bucket.makes) made_by.emplace(node, rows.size());
      const NodeId last = bucket.last_wait.is_valid() ? bucket.last_wait : bucket.start;
      rows.push_back({name(bucket.start), bucket.tensors, graph_.position(bucket.start), graph_.position(last)});
    }
    const auto row_of = [&](const TraceBlock& block) {
      const auto found = block.is_hidden() ? made_by.end() : made_by.find(block.node);
      return found == made_by.end() ? nullptr : &rows[found->second];
    };
    for (const TraceBlock& block : trace.blocks) {
      if (BucketRow* row = row_of(block); row != nullptr) {
        row->bytes = saturating_add(row->bytes, block.bytes);
        ++row->storages;
      }
    }
    for (const uint32_t number : live) {
      const TraceBlock& block = trace.blocks[number];
      if (BucketRow* row = row_of(block); row != nullptr) {
        row->live_bytes = saturating_add(row->live_bytes, block.bytes);
        ++row->live_storages;
      }
    }
    for (BucketRow& row : rows) {
      if (row.storages > 0) result.buckets.push_back(std::move(row));
    }
  }

  // Lists the largest storages at the peak. If view_.others is set, also lists every storage in the
  // table.
  void list_storages(const MemoryTrace& trace, const std::vector<uint32_t>& live, DeviceMemory& result) {
    StorageTable& table = result.storages;
    table.texts = texts_;
    table.live = live.size();
    const size_t count = view_.others ? live.size() : std::min(view_.top, live.size());
    for (size_t i = 0; i < count; ++i) table.entries.push_back(lister_.entry(trace, trace.blocks[live[i]]));
    for (size_t i = 0; i < std::min(view_.top, count); ++i) result.top.push_back(table.row(table.entries[i]));
    if (!view_.others) {
      table = StorageTable();
      return;
    }
    std::vector<bool> is_live(trace.blocks.size(), false);
    for (const uint32_t number : live) is_live[number] = true;
    for (size_t i = 0; i < trace.blocks.size(); ++i) {
      if (!is_live[i]) table.entries.push_back(lister_.entry(trace, trace.blocks[i]));
    }
    std::stable_sort(table.entries.begin() + static_cast<ptrdiff_t>(live.size()), table.entries.end(),
                     [](const StorageEntry& a, const StorageEntry& b) { return a.first_place < b.first_place; });
  }

  void add_candidates(const DeviceFootprint& measured, DeviceMemory& result) const {
    CostTable costs(graph_, view_.costs);
    std::map<std::tuple<std::string, std::string, int64_t>, size_t> rows;  // by target, module and bytes
    for (const RecomputeCandidate& candidate :
         recompute_candidates(graph_, footprint_.storages, footprint_.phases, footprint_.memory, measured.device,
                              measured.place, costs)) {
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

  void count_hidden(const DeviceFootprint& measured, DeviceMemory& result) const {
    if (view_.measure.trace.profile == nullptr) return;
    for (const TraceBlock& block : measured.trace.blocks) {
      if (!block.is_hidden()) continue;
      ++result.hidden_rows;
      if (block.evidence == Evidence::kEstimate) ++result.hidden_estimates;
    }
    for (const NodeId node : measured.trace.unknown_hidden) result.unknown_hidden.push_back(name(node));
  }

  AllocatorRow row(const AllocatorReplay& replay, bool expandable) const {
    const auto peak = [this](const ReplayPeak& at) { return PeakRow{at.bytes, name(at.node)}; };
    AllocatorRow added;
    added.segments = expandable ? "expandable" : "classic";
    added.requested = peak(replay.requested);
    added.allocated = peak(replay.allocated);
    added.active = peak(replay.active);
    added.reserved = peak(replay.reserved);
    added.out_of_memory = name(replay.out_of_memory);
    added.failed_bytes = replay.failed_bytes;
    added.steps = replay.steps;
    added.is_steady = !view_.measure.trace.steady.has_value() || replay.is_steady;
    added.allocated_at = replay.allocated_at;
    added.reserved_at = replay.reserved_at;
    return added;
  }

  void add_fit(const DeviceFootprint& measured, DeviceMemory& result) const {
    const bool is_expandable = view_.measure.allocator.expandable_segments;
    const auto fit = [&](bool expandable) -> std::optional<FitRow> {
      const std::optional<Fit> found = measured.fit(expandable);
      if (!found.has_value()) return std::nullopt;
      FitRow row{found->fits, found->is_certain, expandable,  found->spare, name(found->node),
                 0,           found->asked,      found->left, found->step};
      if (found->node.is_valid()) row.place = graph_.position(found->node);
      return row;
    };
    result.fit = fit(is_expandable);
    result.other_fit = fit(!is_expandable);
    result.target = view_.target;
  }

  const Graph& graph_;
  const Footprint& footprint_;
  const MemoryView& view_;
  std::shared_ptr<Interner> texts_;
  StorageLister lister_;
};

}  // namespace

std::string module_group(std::string_view path, size_t depth) {
  std::vector<std::string> parts;
  for (const std::string_view part : components(path)) {
    if (parts.size() < depth) parts.emplace_back(is_number(part) ? "*" : part);
  }
  return parts.empty() ? std::string(kNoModule) : join(parts, ".");
}

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

int64_t DeviceMemory::outside_bytes() const {
  int64_t sum = 0;
  for (const OutsideMemory& row : outside) sum = saturating_add(sum, row.bytes.value_or(0));
  return sum;
}

std::string step_text(const std::vector<StepRunRow>& step) {
  constexpr size_t kNamed = 4;
  StepRunRow sum;
  std::string names;
  for (size_t i = 0; i < step.size(); ++i) {
    if (i < kNamed) names += (i == 0 ? "" : ", ") + step[i].label;
    sum.from_outputs += step[i].from_outputs;
    sum.by_name += step[i].by_name;
    sum.shared += step[i].shared;
    sum.arriving += step[i].arriving;
    sum.unread += step[i].unread;
  }
  if (step.size() > kNamed) names += ", ...";
  std::string text = "a step of " + count_text(step.size(), "run") + " (" + names +
                     "): " + count_text(sum.from_outputs, "input") + " from outputs of earlier runs";
  if (sum.by_name > 0) text += " (" + std::to_string(sum.by_name) + " matched only by name)";
  text += ", " + std::to_string(sum.shared) + " shared with earlier runs";
  if (sum.arriving > 0) text += ", " + std::to_string(sum.arriving) + " arriving when their run begins";
  if (sum.unread > 0) text += "; " + count_text(sum.unread, "saved value") + " that no run uses";
  return text;
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

std::vector<SymbolRow> symbol_rows(const Footprint& footprint) {
  const auto end = [](bool exists, int64_t value) { return exists ? std::optional<int64_t>(value) : std::nullopt; };
  std::vector<SymbolRow> rows;
  for (const SizeSymbol& symbol : footprint.ranges.symbols) {
    const ValueRange& range = symbol.range;
    rows.push_back({std::string(footprint.graph->module().text(symbol.name)), symbol.value, symbol.is_hint,
                    end(range.has_min(), range.min), end(range.has_max(), range.max)});
  }
  return rows;
}

GraphMemory describe_memory(const Footprint& footprint, const MemoryView& view) {
  return Describer(footprint, view).run();
}

}  // namespace fxopt
