#include "cli/report/graph_diff.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include <nlohmann/json.hpp>

#include "cli/print/json.h"
#include "cli/print/json_list.h"
#include "cli/print/nodes.h"
#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/saturate.h"
#include "ir/alias/collectives.h"
#include "ir/alias/sizes.h"

namespace fxopt {
namespace {

using Json = nlohmann::ordered_json;

void add_to(Tally& tally, int64_t bytes) {
  ++tally.count;
  tally.bytes = saturating_add(tally.bytes, bytes);
}

// Return how far the bytes, or the counts, of both sides are apart.
int64_t weight(const TallyChange& change) { return std::abs(change.after.bytes - change.before.bytes); }
int64_t count_weight(const TallyChange& change) { return std::abs(change.after.count - change.before.count); }

std::string change_percent(double before, double after) {
  if (before == 0) return after == 0 ? "" : "new";
  return formatted("%+.2f %%", 100.0 * (after - before) / before);
}

std::string signed_bytes(int64_t bytes) { return (bytes < 0 ? "-" : "+") + bytes_text(std::abs(bytes)); }

const DeviceMemory* find_device(const GraphMemory& memory, const std::string& name) {
  for (const DeviceMemory& device : memory.devices) {
    if (device.device == name) return &device;
  }
  return nullptr;
}

// Returns the devices of both sides. The devices of `after` come first.
std::vector<std::string> devices_of(const GraphFacts& before, const GraphFacts& after) {
  std::vector<std::string> names;
  for (const GraphFacts* side : {&after, &before}) {
    for (const DeviceMemory& device : side->memory.devices) {
      if (std::find(names.begin(), names.end(), device.device) == names.end()) names.push_back(device.device);
    }
  }
  return names;
}

struct PeakChange {
  std::string name;
  PeakRow before, after;
};

// Returns the peaks of a device. A peak that only one side has is compared with 0 bytes.
std::vector<PeakChange> peak_changes(const DeviceMemory* before, const DeviceMemory* after) {
  std::vector<PeakChange> changes;
  for (size_t i = 0; i < kNumMemoryMetrics; ++i) {
    const MemoryMetric metric = static_cast<MemoryMetric>(i);
    const bool is_allocator = is_of_allocator(metric);
    for (const bool expandable : {false, true}) {
      if (expandable && !is_allocator) continue;
      const auto peak = [&](const DeviceMemory* side) {
        return side == nullptr ? std::nullopt : side->peak(metric, expandable);
      };
      const std::optional<PeakRow> left = peak(before), right = peak(after);
      if (!left.has_value() && !right.has_value()) continue;
      std::string name(metric_name(metric));
      if (is_allocator) name += expandable ? ", expandable" : ", classic";
      changes.push_back({std::move(name), left.value_or(PeakRow()), right.value_or(PeakRow())});
    }
  }
  return changes;
}

// Returns the changes of storages at the peak of `after`. Empty if a side lacks the device.
std::vector<StorageChange> storage_changes(const DeviceMemory* before, const DeviceMemory* after) {
  if (before == nullptr || after == nullptr) return {};
  return compare_live_sets(*before, {before->bytes, before->node}, *after, {after->bytes, after->node}).changes;
}

// If memory ran out, the run ended before its peak, so the peak is unknown.
std::string peak_text(const PeakRow& peak) { return peak.cut ? "out of memory" : bytes_text(peak.bytes); }

nlohmann::ordered_json peak_json(const PeakRow& peak) {
  return {{"bytes", peak.cut ? Json(nullptr) : Json(peak.bytes)}, {"node", peak.node}};
}

Tallies tallies_of(const std::vector<MemoryShare>& shares) {
  Tallies tallies;
  for (const MemoryShare& share : shares) {
    tallies[share.name] = {static_cast<int64_t>(share.storages), share.bytes};
  }
  return tallies;
}

// Returns `side`, or an empty device if `side` is null.
const DeviceMemory& or_nothing(const DeviceMemory* side) {
  static const DeviceMemory kNone;
  return side == nullptr ? kNone : *side;
}

void print_tallies(std::ostream& out, std::string_view title, std::string_view noun, const Tallies& before,
                   const Tallies& after, size_t top) {
  const std::vector<TallyChange> changes = compare_tallies(before, after);
  if (changes.empty()) return;
  out << "  " << title << '\n';
  Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight}, 4);
  table.add({"", std::string(noun), "", "bytes", ""});
  for (size_t i = 0; i < changes.size() && i < top; ++i) {
    const TallyChange& change = changes[i];
    table.add({change.name, std::to_string(change.before.count) + " -> " + std::to_string(change.after.count),
               signed_text(change.after.count - change.before.count),
               signed_bytes(change.after.bytes - change.before.bytes),
               change_percent(static_cast<double>(change.before.bytes), static_cast<double>(change.after.bytes))});
  }
  table.print(out);
  if (changes.size() > top) out << "    and " << changes.size() - top << " more\n";
}

void print_head(std::ostream& out, const GraphFacts& before, const GraphFacts& after) {
  Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.add({"", "before", "after", "change"});
  const auto count = [&table](const char* name, size_t left, size_t right) {
    table.add({name, std::to_string(left), std::to_string(right),
               signed_text(static_cast<int64_t>(right) - static_cast<int64_t>(left))});
  };
  count("nodes", before.nodes, after.nodes);
  count("edges", before.edges, after.edges);
  for (const std::string& device : devices_of(before, after)) {
    for (const PeakChange& peak : peak_changes(find_device(before.memory, device), find_device(after.memory, device))) {
      const bool is_cut = peak.before.cut || peak.after.cut;
      table.add({peak.name + " peak, " + (device.empty() ? "no device" : device), peak_text(peak.before),
                 peak_text(peak.after),
                 is_cut
                     ? ""
                     : change_percent(static_cast<double>(peak.before.bytes), static_cast<double>(peak.after.bytes))});
    }
  }
  const auto figure = [&table](const char* name, double left, double right, const char* format) {
    table.add({name, formatted(format, left), formatted(format, right), change_percent(left, right)});
  };
  figure("work, TFLOP", static_cast<double>(before.work.flops) / 1e12, static_cast<double>(after.work.flops) / 1e12,
         "%.3f");
  table.add({"bytes moved", bytes_text(before.work.bytes), bytes_text(after.work.bytes),
             change_percent(static_cast<double>(before.work.bytes), static_cast<double>(after.work.bytes))});
  if (before.work.unknown + after.work.unknown > 0) {
    count("calls of unknown work", before.work.unknown, after.work.unknown);
  }
  if (after.has_seconds) {
    const std::string left = kernel_basis_text(before.work), right = kernel_basis_text(after.work);
    const bool is_bound = left != "measured" || right != "measured";
    const std::string basis = left == right ? left : left + "; " + right;
    figure((is_bound ? "time at least (" + basis + "), ms" : "time (measured), ms").c_str(), before.work.seconds * 1e3,
           after.work.seconds * 1e3, "%.3f");
  }
  if (!link_time_text(before.work).empty() || !link_time_text(after.work).empty()) {
    table.add({"time of collectives", link_time_text(before.work), link_time_text(after.work),
               change_percent(before.work.link_seconds, after.work.link_seconds)});
  }
  table.print(out);
}

void print_device(std::ostream& out, const DeviceMemory* before, const DeviceMemory* after, size_t top) {
  const std::string device = (after != nullptr ? after : before)->device;
  out << (device.empty() ? "no device" : printable_line(device)) << ": ";
  if (before == nullptr || after == nullptr) {
    out << (before == nullptr ? "only after\n" : "only before\n");
  } else {
    out << "peak at %" << printable_line(before->node) << " before, at %" << printable_line(after->node) << " after\n";
  }
  const auto section = [&](const char* title, std::vector<MemoryShare> DeviceMemory::*member) {
    print_tallies(out, title, "storages", tallies_of(or_nothing(before).*member), tallies_of(or_nothing(after).*member),
                  top);
  };
  section("live at the peak, by class", &DeviceMemory::by_class);
  section("live at the peak, by module", &DeviceMemory::by_module);
  section("live at the peak, by layer", &DeviceMemory::by_layer);
  const std::vector<StorageChange> changes = storage_changes(before, after);
  const auto list = [&](const char* title, bool grew) {
    size_t shown = 0, all = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      const StorageChange& change = grew ? changes[i] : changes[changes.size() - 1 - i];
      if ((change.growth() > 0) != grew) break;
      if (all++ == 0) out << "  " << title << '\n';
      if (shown < top) out << "    " << change_text(change) << '\n';
      shown += shown < top ? 1 : 0;
    }
    if (all > shown) out << "    and " << all - shown << " more\n";
  };
  list("grew or new at the peak", true);
  list("shrank or gone at the peak", false);
}

Json tally_json(const Tallies& before, const Tallies& after) {
  return json_list(compare_tallies(before, after), [](const TallyChange& change) -> Json {
    return {{"name", change.name},
            {"before", {{"count", change.before.count}, {"bytes", change.before.bytes}}},
            {"after", {{"count", change.after.count}, {"bytes", change.after.bytes}}}};
  });
}

Json device_json(const std::string& name, const DeviceMemory* before, const DeviceMemory* after) {
  Json peaks = Json::array(), storages = Json::array();
  for (const PeakChange& peak : peak_changes(before, after)) {
    peaks.push_back({{"metric", peak.name}, {"before", peak_json(peak.before)}, {"after", peak_json(peak.after)}});
  }
  const DeviceMemory &left = or_nothing(before), &right = or_nothing(after);
  for (const StorageChange& change : storage_changes(before, after)) {
    const StorageRow row = change.row();
    storages.push_back({{"node", row.node},
                        {"label", row.label},
                        {"module_path", row.module_path},
                        {"type", row.type},
                        {"class", row.kind},
                        {"before", change.before},
                        {"after", change.after}});
  }
  return {{"device", name},
          {"peaks", std::move(peaks)},
          {"by_class", tally_json(tallies_of(left.by_class), tallies_of(right.by_class))},
          {"by_module", tally_json(tallies_of(left.by_module), tallies_of(right.by_module))},
          {"by_layer", tally_json(tallies_of(left.by_layer), tallies_of(right.by_layer))},
          {"storages", std::move(storages)}};
}

// Counts calls by target, and the bytes of their results.
Tallies count_ops(const Footprint& footprint) {
  const Graph& graph = *footprint.graph;
  IdMap<TargetId, Tally> tallies(graph.module().num_targets());
  for (const NodeId node : graph.nodes()) {
    if (graph[node].is_call() && graph[node].target.is_valid()) ++tallies[graph[node].target].count;
  }
  for (const Lifetime& life : footprint.memory.lifetimes) {
    const Buffer& buffer = footprint.storages.buffer(life.buffer);
    const TargetId target = graph[buffer.producer].target;
    if (buffer.source != BufferSource::kNode || !target.is_valid()) continue;
    tallies[target].bytes = saturating_add(tallies.get(target).bytes, life.bytes);
  }
  Tallies named;
  for (size_t i = 0; i < tallies.size(); ++i) {
    const Tally& tally = tallies.get(TargetId(i));
    if (tally != Tally()) named[std::string(graph.module().text(graph.module().target(TargetId(i)).name))] = tally;
  }
  return named;
}

// Counts saved values by module, operator and type. Names are built once for each kind of value,
// because there may be a million values.
Tallies count_saved(const Footprint& footprint) {
  const Graph& graph = *footprint.graph;
  const Module& module = graph.module();
  using Kind = std::tuple<StringId, TargetId, DType, DimsId>;
  struct Saved {
    Tally tally;
    BufferId first;
  };
  std::map<Kind, Saved> kinds;
  for (const Lifetime& life : footprint.memory.lifetimes) {
    const Buffer& buffer = footprint.storages.buffer(life.buffer);
    if (buffer.source != BufferSource::kNode || life.kind != MemoryClass::kSavedValue) continue;
    const Node& node = graph[buffer.producer];
    const bool is_tensor = buffer.value.is_valid() && graph.pool().value(buffer.value).kind == ValueKind::kTensor;
    const Tensor tensor = is_tensor ? graph.pool().tensor(graph.pool().value(buffer.value)) : Tensor();
    Saved& saved = kinds[{node.module_path, node.target, tensor.dtype, tensor.sizes}];
    if (!saved.first.is_valid()) saved.first = life.buffer;
    add_to(saved.tally, life.bytes);
  }
  Tallies named;
  for (const auto& [kind, saved] : kinds) {
    const Buffer& buffer = footprint.storages.buffer(saved.first);
    std::string name = module_group(module.text(std::get<StringId>(kind)), SIZE_MAX) + ": " +
                       std::string(target_text(graph, buffer.producer));
    if (buffer.value.is_valid()) name += " " + value_text(graph, graph.pool().value(buffer.value));
    Tally& tally = named[name];
    tally.count += saved.tally.count;
    tally.bytes = saturating_add(tally.bytes, saved.tally.bytes);
  }
  return named;
}

// Counts calls by target and group, and the bytes of their operands.
Tallies count_collectives(const Graph& graph, const SymbolValues& symbols) {
  const Module& module = graph.module();
  const std::vector<NodeId> schedule(graph.nodes().begin(), graph.nodes().end());
  Tallies named;
  for (const GroupRow& group : collectives_by_group(graph, schedule, symbol_values(module, symbols))) {
    const std::string key = group_text(module, group.key);
    for (const CollectiveRow& row : group.collectives) {
      Tally& tally =
          named[std::string(module.text(module.target(row.target).name)) + " on group " + (key.empty() ? "?" : key)];
      tally.count += static_cast<int64_t>(row.calls);
      tally.bytes = saturating_add(tally.bytes, row.input_bytes);
    }
  }
  return named;
}

}  // namespace

GraphFacts graph_facts(const Footprint& footprint, const MemoryView& view) {
  const Graph& graph = *footprint.graph;
  GraphFacts facts;
  facts.graph = graph.module().text(graph.name());
  facts.nodes = graph.num_nodes();
  facts.edges = graph.num_edges();
  facts.memory = describe_memory(footprint, view);
  facts.has_seconds = view.costs.has_seconds();
  facts.work = CostTable(graph, view.costs).all();
  facts.ops = count_ops(footprint);
  facts.saved = count_saved(footprint);
  facts.collectives = count_collectives(graph, view.measure.memory.symbols);
  return facts;
}

std::vector<TallyChange> compare_tallies(const Tallies& before, const Tallies& after) {
  std::vector<TallyChange> changes;
  for (const auto& [name, tally] : before) {
    const Tallies::const_iterator found = after.find(name);
    const Tally other = found == after.end() ? Tally() : found->second;
    if (other != tally) changes.push_back({name, tally, other});
  }
  for (const auto& [name, tally] : after) {
    if (!before.contains(name) && tally != Tally()) changes.push_back({name, {}, tally});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const TallyChange& a, const TallyChange& b) {
    if (weight(a) != weight(b)) return weight(a) > weight(b);
    return count_weight(a) != count_weight(b) ? count_weight(a) > count_weight(b) : a.name < b.name;
  });
  return changes;
}

void print_graph_diff(std::ostream& out, const GraphFacts& before, const GraphFacts& after, size_t top) {
  out << '@' << printable_line(before.graph);
  if (after.graph != before.graph) out << " -> @" << printable_line(after.graph);
  out << '\n';
  print_head(out, before, after);
  print_tallies(out, "calls", "calls", before.ops, after.ops, top);
  print_tallies(out, "collectives", "calls", before.collectives, after.collectives, top);
  print_tallies(out, "saved for backward, by module, op and type", "values", before.saved, after.saved, top);
  for (const std::string& device : devices_of(before, after)) {
    print_device(out, find_device(before.memory, device), find_device(after.memory, device), top);
  }
}

nlohmann::ordered_json graph_diff_json(const GraphFacts& before, const GraphFacts& after) {
  const auto side = [](const GraphFacts& facts) -> Json {
    return {{"graph", facts.graph},
            {"nodes", facts.nodes},
            {"edges", facts.edges},
            {"work", cost_json(facts.work, facts.has_seconds)}};
  };
  const auto change = [&](const std::string& device) {
    return device_json(device, find_device(before.memory, device), find_device(after.memory, device));
  };
  return {{"before", side(before)},
          {"after", side(after)},
          {"ops", tally_json(before.ops, after.ops)},
          {"collectives", tally_json(before.collectives, after.collectives)},
          {"saved", tally_json(before.saved, after.saved)},
          {"devices", json_list(devices_of(before, after), change)}};
}

}  // namespace fxopt
