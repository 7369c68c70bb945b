#include "cli/report/memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "cli/report/json.h"
#include "cli/report/nodes.h"
#include "cli/report/table.h"
#include "core/saturate.h"
#include "ir/analysis/allocator_replay.h"
#include "ir/analysis/phases.h"
#include "ir/analysis/storages.h"

namespace fxopt {
namespace {

constexpr size_t kMaxShownShares = 20;
constexpr size_t kMaxShownUnknown = 5;

// The first `depth` components of a dotted path.
std::string path_prefix(std::string_view path, size_t depth) {
  if (path.empty()) return "(no module)";
  size_t end = 0;
  for (size_t i = 0; i < depth && end < path.size(); ++i) end = std::min(path.find('.', end + 1), path.size());
  return std::string(path.substr(0, end));
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

class Describer {
 public:
  Describer(const Graph& graph, const MemoryView& view)
      : graph_(graph),
        view_(view),
        phases_(resolve_phases(graph)),
        storages_(graph),
        report_(analyze_memory(graph, storages_, view.options)) {
    for (const NodeId node : graph.nodes()) schedule_.push_back(node);
  }

  GraphMemory run() const {
    GraphMemory memory;
    memory.graph = graph_.module().text(graph_.name());
    memory.nodes = graph_.num_nodes();
    memory.roles_derived = report_.roles_derived;
    memory.unknown = report_.unknown_buffers;
    for (const NodeId node : report_.unknown_nodes) memory.unknown_nodes.emplace_back(graph_.name_of(node));
    for (const DevicePeak& peak : report_.devices) memory.devices.push_back(device(peak));
    return memory;
  }

 private:
  std::string name_at(uint32_t position) const {
    return position < schedule_.size() ? std::string(graph_.name_of(schedule_[position])) : std::string();
  }

  StorageRow row(const Lifetime& lifetime) const {
    const Buffer& buffer = storages_.buffer(lifetime.buffer);
    const Node& node = graph_[buffer.producer];
    StorageRow row;
    row.node = graph_.name_of(buffer.producer);
    row.module_path = graph_.module().text(node.module_path);
    if (buffer.value.is_valid()) row.type = value_text(graph_, graph_.pool().value(buffer.value));
    row.phase = name_of(phases_.phase[buffer.producer]);
    row.kind = memory_class_name(lifetime.kind);
    row.bytes = lifetime.bytes;
    row.known = lifetime.known;
    row.first = name_at(lifetime.first);
    row.last = name_at(lifetime.last);
    return row;
  }

  DeviceMemory device(const DevicePeak& peak) const {
    const Module& module = graph_.module();
    DeviceMemory result;
    result.device = module.text(peak.device);
    result.bytes = peak.bytes;
    result.input_bytes = peak.input_bytes;
    result.live = peak.live.size();
    if (peak.node.is_valid()) {
      result.node = graph_.name_of(peak.node);
      result.position = graph_.position(peak.node);
      result.module_path = module.text(graph_[peak.node].module_path);
      result.source = source_text(graph_, peak.node);
    }
    Shares classes, modules;
    for (const Lifetime& lifetime : peak.live) {
      const NodeId producer = storages_.buffer(lifetime.buffer).producer;
      const uint32_t position = graph_.position(producer);
      add_share(classes, std::string(memory_class_name(lifetime.kind)), position, lifetime.bytes);
      add_share(modules, path_prefix(module.text(graph_[producer].module_path), view_.module_depth), position,
                lifetime.bytes);
      if (result.top.size() < view_.top) result.top.push_back(row(lifetime));
    }
    result.by_class = sorted_shares(classes);
    result.by_module = sorted_shares(modules);
    if (result.device.starts_with("cuda")) add_allocator(peak.device, result);
    return result;
  }

  void add_allocator(StringId device, DeviceMemory& result) const {
    ReplayOptions options{view_.allocator, view_.device_bytes};
    for (const bool expandable : {false, true}) {
      options.config.expandable_segments = expandable;
      const AllocatorReplay replay = replay_allocator(graph_, storages_, report_, device, options);
      const auto row = [this](const ReplayPeak& peak) {
        return AllocatorPeakRow{peak.bytes, peak.node.is_valid() ? std::string(graph_.name_of(peak.node)) : ""};
      };
      AllocatorRow& added = result.allocator.emplace_back();
      added.segments = expandable ? "expandable" : "classic";
      added.requested = row(replay.requested);
      added.allocated = row(replay.allocated);
      added.active = row(replay.active);
      added.reserved = row(replay.reserved);
      if (replay.out_of_memory.is_valid()) added.out_of_memory = graph_.name_of(replay.out_of_memory);
      added.failed_bytes = replay.failed_bytes;
    }
  }

  const Graph& graph_;
  const MemoryView& view_;
  PhaseMap phases_;
  StorageMap storages_;
  MemoryReport report_;
  std::vector<NodeId> schedule_;
};

void print_shares(std::ostream& out, std::string_view title, const std::vector<MemoryShare>& shares, int64_t whole) {
  Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight}, 4);
  for (size_t i = 0; i < shares.size() && i < kMaxShownShares; ++i) {
    const MemoryShare& share = shares[i];
    table.add(
        {share.name, bytes_text(share.bytes), percent_text(share.bytes, whole), count_text(share.storages, "storage")});
  }
  out << "  " << title << '\n';
  table.print(out);
  if (shares.size() > kMaxShownShares) out << "    and " << shares.size() - kMaxShownShares << " more\n";
}

// Peaks side by side, then where memory ran out.
void print_allocator(std::ostream& out, const DeviceMemory& device) {
  if (device.allocator.empty()) return;
  out << "  caching allocator, without kernels' workspaces\n";
  Table table(std::vector<Align>(1 + device.allocator.size(), Align::kLeft), 4);
  const auto add = [&](std::string name, const std::function<std::string(const AllocatorRow&)>& cell) {
    std::vector<std::string> cells{std::move(name)};
    for (const AllocatorRow& row : device.allocator) cells.push_back(cell(row));
    table.add(std::move(cells));
  };
  add("", [](const AllocatorRow& row) { return row.segments + " segments"; });
  add("requested", [](const AllocatorRow& row) { return bytes_text(row.requested.bytes); });
  add("allocated", [](const AllocatorRow& row) { return bytes_text(row.allocated.bytes); });
  add("active", [](const AllocatorRow& row) { return bytes_text(row.active.bytes); });
  add("reserved", [](const AllocatorRow& row) { return bytes_text(row.reserved.bytes); });
  add("reached at", [](const AllocatorRow& row) {
    return row.reserved.node.empty() ? std::string("the inputs") : "%" + row.reserved.node;
  });
  table.print(out);
  for (const AllocatorRow& row : device.allocator) {
    if (row.out_of_memory.empty()) continue;
    out << "    " << row.segments << " segments: out of memory at %" << printable_line(row.out_of_memory)
        << ", which asks for " << bytes_text(row.failed_bytes) << '\n';
  }
}

void print_device(std::ostream& out, const GraphMemory& memory, const DeviceMemory& device) {
  out << '@' << printable_line(memory.graph) << ", "
      << (device.device.empty() ? "no device" : printable_line(device.device)) << ": ideal peak "
      << (memory.unknown > 0 ? "at least " : "") << bytes_text(device.bytes) << '\n';
  if (!device.node.empty()) {
    out << "  at %" << printable_line(device.node) << ", node " << device.position + 1 << " of " << memory.nodes;
    if (!device.module_path.empty()) out << ", module " << printable_line(device.module_path);
    if (!device.source.empty()) out << ", " << printable_line(device.source);
    out << '\n';
  }
  out << "  inputs and attributes " << bytes_text(device.input_bytes) << '\n';
  print_allocator(out, device);
  print_shares(out, "live at the peak, by class", device.by_class, device.bytes);
  print_shares(out, "live at the peak, by module", device.by_module, device.bytes);
  if (device.top.empty()) return;
  out << "  largest storages at the peak (" << device.top.size() << " of " << device.live << ")\n";
  Table table({Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft}, 4);
  table.add({"bytes", "made by", "type", "class", "phase", "live from .. to"});
  for (const StorageRow& row : device.top) {
    table.add({row.known ? std::to_string(row.bytes) : "unknown", "%" + row.node, row.type, row.kind, row.phase,
               "%" + row.first + " .. %" + row.last});
  }
  table.print(out);
}

nlohmann::ordered_json shares_json(const std::vector<MemoryShare>& shares) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MemoryShare& share : shares) {
    list.push_back({{"name", share.name}, {"bytes", share.bytes}, {"storages", share.storages}});
  }
  return list;
}

nlohmann::ordered_json row_json(const StorageRow& row) {
  return {
      {"node", row.node},   {"module_path", row.module_path},
      {"type", row.type},   {"class", row.kind},
      {"phase", row.phase}, {"bytes", row.known ? nlohmann::ordered_json(row.bytes) : nlohmann::ordered_json(nullptr)},
      {"first", row.first}, {"last", row.last}};
}

nlohmann::ordered_json allocator_json(const std::vector<AllocatorRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const AllocatorRow& row : rows) {
    nlohmann::ordered_json& json = list.emplace_back();
    json["segments"] = row.segments;
    const auto add = [&json](const char* name, const AllocatorPeakRow& peak) {
      json[name] = {{"peak_bytes", peak.bytes}, {"node", peak.node}};
    };
    add("requested", row.requested);
    add("allocated", row.allocated);
    add("active", row.active);
    add("reserved", row.reserved);
    json["out_of_memory"] = row.out_of_memory;
    json["failed_bytes"] = row.failed_bytes;
  }
  return list;
}

nlohmann::ordered_json device_json(const DeviceMemory& device) {
  nlohmann::ordered_json top = nlohmann::ordered_json::array();
  for (const StorageRow& row : device.top) top.push_back(row_json(row));
  return {{"device", device.device},
          {"model", "ideal"},
          {"peak_bytes", device.bytes},
          {"input_bytes", device.input_bytes},
          {"node", device.node},
          {"position", device.position},
          {"module_path", device.module_path},
          {"source", device.source},
          {"live_storages", device.live},
          {"allocator", allocator_json(device.allocator)},
          {"by_class", shares_json(device.by_class)},
          {"by_module", shares_json(device.by_module)},
          {"top", top}};
}

}  // namespace

GraphMemory describe_memory(const Graph& graph, const MemoryView& view) { return Describer(graph, view).run(); }

void print_memory(std::ostream& out, const GraphMemory& memory) {
  if (memory.devices.empty()) out << '@' << printable_line(memory.graph) << ": no tensors, ideal peak 0 B\n";
  for (const DeviceMemory& device : memory.devices) print_device(out, memory, device);
  if (memory.roles_derived) out << "  the file gives inputs no roles: classes follow what the graph shows\n";
  if (memory.unknown == 0) return;
  out << "  sizes unknown: " << count_text(memory.unknown, "storage") << ", made by";
  for (size_t i = 0; i < memory.unknown_nodes.size() && i < kMaxShownUnknown; ++i) {
    out << (i == 0 ? " %" : ", %") << printable_line(memory.unknown_nodes[i]);
  }
  if (memory.unknown_nodes.size() > kMaxShownUnknown) out << ", ...";
  out << '\n';
}

nlohmann::ordered_json memory_json(const GraphMemory& memory) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const DeviceMemory& device : memory.devices) devices.push_back(device_json(device));
  return {{"graph", memory.graph},
          {"nodes", memory.nodes},
          {"peak_bytes", memory.peak_bytes()},
          {"roles_derived", memory.roles_derived},
          {"unknown_storages", memory.unknown},
          {"unknown_nodes", memory.unknown_nodes},
          {"devices", devices}};
}

}  // namespace fxopt
