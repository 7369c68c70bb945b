// Memory reports as JSON. schemas/memory_report.schema.json describes the format.
#include "cli/print/json.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "cli/print/json_list.h"
#include "cli/report/memory/costs.h"
#include "cli/report/memory/report.h"

namespace fxopt {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json share_json(const MemoryShare& share) {
  return {{"name", share.name}, {"bytes", share.bytes}, {"storages", share.storages}};
}

Json row_json(const StorageRow& row) {
  return {{"node", row.node},
          {"label", row.label},
          {"module_path", row.module_path},
          {"type", row.type},
          {"target", row.target},
          {"source", row.source},
          {"fqn", row.fqn},
          {"class", row.kind},
          {"phase", row.phase},
          {"bytes", row.bytes},
          {"first", row.first},
          {"last", row.last},
          {"first_position", row.first_place},
          {"last_position", row.last_place}};
}

Json peak_json(const PeakRow& peak) { return {{"peak_bytes", peak.bytes}, {"node", peak.node}}; }

Json allocator_row_json(const AllocatorRow& row) {
  return {{"segments", row.segments},
          {"requested", peak_json(row.requested)},
          {"allocated", peak_json(row.allocated)},
          {"active", peak_json(row.active)},
          {"reserved", peak_json(row.reserved)},
          {"out_of_memory", row.out_of_memory},
          {"failed_bytes", row.failed_bytes},
          {"steps", row.steps},
          {"is_steady", row.is_steady}};
}

Json arena_json(const std::optional<ArenaRow>& arena) {
  if (!arena.has_value()) return nullptr;
  return {{"bytes", arena->bytes},
          {"lower_bound", arena->lower_bound},
          {"method", arena->method},
          {"optimal", arena->optimal}};
}

Json outside_json(const OutsideMemory& row) {
  return {{"name", row.name},
          {"bytes", or_null(row.bytes)},
          {"evidence", row.evidence},
          {"communicators", row.communicators}};
}

// Returns the entries of the table from `first` up to, but not including, `end`.
Json entries_json(const StorageTable& table, size_t first, size_t end) {
  Json list = Json::array();
  for (size_t i = first; i < end; ++i) list.push_back(row_json(table.row(table.entries[i])));
  return list;
}

Json fit_json(const DeviceMemory& device) {
  if (!device.fit.has_value()) return nullptr;
  const FitRow& fit = *device.fit;
  return {{"fits", fit.fits},
          {"is_certain", fit.is_certain},
          {"segments", fit.expandable ? "expandable" : "classic"},
          {"spare_bytes", fit.fits ? Json(fit.spare) : Json(nullptr)},
          {"node", fit.node},
          {"position", fit.fits ? Json(nullptr) : Json(fit.place)},
          {"asked_bytes", fit.fits ? Json(nullptr) : Json(fit.asked)},
          {"left_bytes", fit.fits ? Json(nullptr) : Json(fit.left)},
          {"step", fit.fits ? Json(nullptr) : Json(fit.step)},
          {"verdict", verdict_text(device)}};
}

Json advice_json(const std::optional<Advice>& advice) {
  if (!advice.has_value()) return nullptr;
  return {{"text", advice_text(*advice)},
          {"pipeline", advice->pipeline},
          {"holds", advice->holds},
          {"metric", advice->metric},
          {"before_bytes", or_null(advice->before)},
          {"after_bytes", advice->after},
          {"spare_bytes", or_null(advice->spare)},
          {"flops_before", advice->flops_before},
          {"flops_after", advice->flops_after}};
}

Json recompute_json(const RecomputeRow& row, bool has_seconds) {
  const bool is_known = row.work.unknown == 0;
  return {{"nodes", row.nodes},
          {"target", row.target},
          {"module_path", row.module_path},
          {"bytes", row.bytes},
          {"flops", is_known ? Json(row.work.flops) : Json(nullptr)},
          {"moved_bytes", is_known ? Json(row.work.bytes) : Json(nullptr)},
          {"seconds", is_known && has_seconds ? Json(row.work.seconds) : Json(nullptr)},
          {"kernels", basis_json(row.work.kernels)}};
}

Json bucket_json(const BucketRow& row) {
  return {{"node", row.node},
          {"tensors", row.tensors},
          {"first_position", row.first_place},
          {"last_position", row.last_place},
          {"storages", row.storages},
          {"bytes", row.bytes},
          {"live_storages", row.live_storages},
          {"live_bytes", row.live_bytes}};
}

Json range_json(const std::optional<PeakRange>& range) {
  if (!range.has_value()) return nullptr;
  return {{"min_bytes", range->min}, {"max_bytes", or_null(range->max)}};
}

Json symbol_json(const SymbolRow& symbol) {
  return {{"name", symbol.name},
          {"value", or_null(symbol.value)},
          {"is_hint", symbol.is_hint},
          {"min", or_null(symbol.min)},
          {"max", or_null(symbol.max)}};
}

Json device_json(const DeviceMemory& device, bool has_seconds, Storages storages) {
  Json json = {
      {"device", device.device},
      {"model", device.model},
      {"peak_bytes", device.bytes},
      {"ideal", peak_json(device.ideal)},
      {"requested", peak_json(device.requested)},
      {"ideal_range", range_json(device.ideal_range)},
      {"input_bytes", device.input_bytes},
      {"node", device.node},
      {"position", device.position},
      {"module_path", device.module_path},
      {"source", device.source},
      {"live_storages", device.live},
      {"allocator", json_list(device.allocator, allocator_row_json)},
      {"arena", arena_json(device.arena)},
      {"outside", json_list(device.outside, outside_json)},
      {"device_bytes", or_null(device.device_bytes)},
      {"allocator_bytes", or_null(device.allocator_bytes)},
      {"hidden",
       {{"blocks", device.hidden_rows}, {"estimates", device.hidden_estimates}, {"unknown", device.unknown_hidden}}},
      {"by_class", json_list(device.by_class, share_json)},
      {"by_module", json_list(device.by_module, share_json)},
      {"by_layer", json_list(device.by_layer, share_json)},
      {"buckets", json_list(device.buckets, bucket_json)},
      {"top", storages == Storages::kAll ? entries_json(device.storages, 0, device.storages.live)
                                         : json_list(device.top, row_json)},
      {"recompute",
       json_list(device.recompute, [&](const RecomputeRow& row) { return recompute_json(row, has_seconds); })}};
  if (storages == Storages::kAll) {  // baselines list every storage
    json["others"] = entries_json(device.storages, device.storages.live, device.storages.entries.size());
    return json;
  }
  json["fit"] = fit_json(device);
  json["advice"] = advice_json(device.advice);
  return json;
}

// Reads members of an object. The arguments are pairs of a key and the variable for its value.
void read_fields(const Json&) {}
template <class Value, class... More>
void read_fields(const Json& json, const char* key, Value& value, More&&... more) {
  json.at(key).get_to(value);
  read_fields(json, more...);
}

PeakRow peak_from(const Json& json) {
  return {json.at("peak_bytes").get<int64_t>(), json.at("node").get<std::string>()};
}

std::vector<MemoryShare> shares_from(const Json& json) {
  std::vector<MemoryShare> shares;
  for (const Json& row : json) {
    shares.push_back(
        {row.at("name").get<std::string>(), row.at("bytes").get<int64_t>(), row.at("storages").get<size_t>()});
  }
  return shares;
}

StorageRow row_from(const Json& json) {
  StorageRow row;
  read_fields(json, "node", row.node, "label", row.label, "module_path", row.module_path, "type", row.type, "target",
              row.target, "source", row.source, "class", row.kind, "phase", row.phase, "bytes", row.bytes, "first",
              row.first, "last", row.last, "first_position", row.first_place, "last_position", row.last_place);
  return row;
}

AllocatorRow allocator_from(const Json& json) {
  AllocatorRow row;
  json.at("segments").get_to(row.segments);
  row.requested = peak_from(json.at("requested"));
  row.allocated = peak_from(json.at("allocated"));
  row.active = peak_from(json.at("active"));
  row.reserved = peak_from(json.at("reserved"));
  read_fields(json, "out_of_memory", row.out_of_memory, "failed_bytes", row.failed_bytes);
  return row;
}

DeviceMemory device_from(const Json& json) {
  DeviceMemory device;
  read_fields(json, "device", device.device, "model", device.model, "peak_bytes", device.bytes);
  device.ideal = peak_from(json.at("ideal"));
  device.requested = peak_from(json.at("requested"));
  read_fields(json, "input_bytes", device.input_bytes, "node", device.node, "position", device.position, "module_path",
              device.module_path, "source", device.source, "live_storages", device.live);
  for (const Json& row : json.at("allocator")) device.allocator.push_back(allocator_from(row));
  if (const Json& arena = json.at("arena"); !arena.is_null()) {
    device.arena = ArenaRow{arena.at("bytes").get<int64_t>(), arena.at("lower_bound").get<int64_t>(),
                            arena.at("method").get<std::string>(), arena.at("optimal").get<bool>()};
  }
  device.by_class = shares_from(json.at("by_class"));
  device.by_module = shares_from(json.at("by_module"));
  device.by_layer = shares_from(json.at("by_layer"));
  StorageTable& table = device.storages;
  table.texts = std::make_shared<Interner>();
  for (const Json& row : json.at("top")) table.entries.push_back(table.entry(row_from(row)));
  table.live = table.entries.size();
  if (json.contains("others")) {
    for (const Json& row : json["others"]) table.entries.push_back(table.entry(row_from(row)));
  }
  return device;
}

}  // namespace

GraphMemory memory_from_json(const nlohmann::ordered_json& json) {
  GraphMemory memory;
  read_fields(json, "graph", memory.graph, "nodes", memory.nodes, "profile", memory.profile, "steady", memory.is_steady,
              "unknown_storages", memory.unknown);
  for (const Json& device : json.at("devices")) memory.devices.push_back(device_from(device));
  return memory;
}

nlohmann::ordered_json step_run_json(const StepRunRow& run) {
  return {
      {"label", run.label},     {"graph", run.graph},   {"inputs", run.inputs},     {"from_outputs", run.from_outputs},
      {"by_name", run.by_name}, {"shared", run.shared}, {"at_begin", run.at_begin}, {"arriving", run.arriving},
      {"unread", run.unread}};
}

nlohmann::ordered_json memory_json(const GraphMemory& memory, Storages storages) {
  const auto device = [&](const DeviceMemory& each) { return device_json(each, memory.has_seconds, storages); };
  return {{"graph", memory.graph},
          {"step", json_list(memory.step, step_run_json)},
          {"nodes", memory.nodes},
          {"peak_bytes", memory.peak_bytes()},
          {"profile", memory.profile},
          {"steady", memory.is_steady},
          {"roles_derived", memory.roles_derived},
          {"resized_storages", memory.resized},
          {"unknown_storages", memory.unknown},
          {"unknown_nodes", memory.unknown_nodes},
          {"symbols", json_list(memory.symbols, symbol_json)},
          {"devices", json_list(memory.devices, device)}};
}

}  // namespace fxopt
