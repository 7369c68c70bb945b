#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/print/json.h"
#include "cli/print/json_list.h"
#include "cli/print/nodes.h"
#include "cli/report/summary.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

using Json = nlohmann::ordered_json;

Json list() { return Json::array(); }

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

Json names_json(const Graph& graph, const std::vector<NodeId>& nodes) {
  return json_list(nodes, [&](NodeId node) { return graph.name_of(node); });
}

Json sum_json(const StorageSum& sum) {
  return {{"count", sum.storages}, {"bytes", sum.bytes}, {"unknown", sum.unknown}, {"by_hint", sum.by_hint}};
}

Json phases_json(const PhaseCounts& counts) {
  Json json = Json::object();
  for (size_t i = 0; i < kNumPhases; ++i) {
    if (counts[i] > 0) json[std::string(name_of(static_cast<Phase>(i)))] = counts[i];
  }
  return json;
}

template <class E>
Json counts_json(const std::map<E, size_t>& counts) {
  Json json = Json::object();
  for (const auto& [value, count] : counts) json[enum_text(value)] = count;
  return json;
}

std::string_view target_name(const GraphSummary& summary, TargetId target) {
  const Module& module = summary.graph->module();
  return module.text(module.target(target).name);
}

Json input_json(const std::string& role, const InputRow& row) {
  return {{"role", role},
          {"nodes", row.nodes},
          {"tensors", row.tensors},
          {"tied", row.tied},
          {"subclass_parts", row.parts},
          {"elements", row.elements},
          {"unknown_elements", row.unknown_elements},
          {"dtypes", counts_json(row.dtypes)},
          {"storages", sum_json(row.storages)}};
}

Json inputs_json(const GraphSummary& summary) {
  Json json = list();
  for (const InputRow& row : summary.inputs) json.push_back(input_json(enum_text(row.role), row));
  if (summary.attributes.nodes > 0) json.push_back(input_json("attribute", summary.attributes));
  return json;
}

Json phase_row_json(const PhaseRow& row) {
  return {{"phase", name_of(row.phase)}, {"nodes", row.nodes}, {"calls", row.calls}, {"made", sum_json(row.made)}};
}

Json by_module_json(const GraphSummary& summary, const SummaryView& view) {
  Json json = list();
  for (const ModuleRow& row : summary.modules.rows(module_depth(summary, view))) {
    const ModuleFigures& figures = row.figures;
    json.push_back({{"path", row.path},
                    {"name", row.name},
                    {"depth", row.depth},
                    {"alike", row.alike},
                    {"nodes", figures.nodes},
                    {"phases", phases_json(figures.phases)},
                    {"parameters", figures.parameters},
                    {"elements", figures.elements},
                    {"unknown_elements", figures.unknown_elements},
                    {"made", sum_json(figures.made)}});
  }
  return json;
}

Json by_kind_json(const GraphSummary& summary) {
  return json_list(summary.kinds, [&](const KindRow& row) -> Json {
    Json ops = list();
    for (const size_t op : row.ops) ops.push_back(target_name(summary, summary.ops[op].target));
    return {{"kind", compute_class_name(row.kind)},
            {"calls", row.calls},
            {"phases", phases_json(row.phases)},
            {"made", sum_json(row.made)},
            {"ops", ops}};
  });
}

Json by_op_json(const GraphSummary& summary) {
  return json_list(summary.ops, [&](const OpRow& row) -> Json {
    return {{"op", target_name(summary, row.target)},
            {"kind", compute_class_name(row.kind)},
            {"calls", row.calls},
            {"phases", phases_json(row.phases)},
            {"made", sum_json(row.made)}};
  });
}

Json dtype_row_json(const DTypeRow& row) {
  return {{"dtype", enum_text(row.dtype)}, {"tensors", row.tensors}, {"storages", sum_json(row.storages)}};
}

Json collectives_json(const GraphSummary& summary, const GroupRow& group) {
  return json_list(group.collectives, [&](const CollectiveRow& row) -> Json {
    const Module& module = summary.graph->module();
    return {{"op", target_name(summary, row.target)},
            {"kind", collective_kind_name(collective_kind(*module.target(row.target).op))},
            {"calls", row.calls},
            {"replaces", row.replaces},
            {"input_bytes", row.input_bytes},
            {"unknown_input", row.unknown_input},
            {"by_hint", row.by_hint},
            {"moved_bytes", row.moved_bytes},
            {"unknown_moved", row.unknown_moved}};
  });
}

Json by_group_json(const GraphSummary& summary) {
  const Module& module = summary.graph->module();
  Json json = list();
  for (const GroupRow& row : summary.groups) {
    Json dims = list();
    for (const StringId dim : row.mesh_dims) dims.push_back(module.text(dim));
    const bool is_listed = row.group != nullptr;
    json.push_back({{"group", text_or_null(group_text(module, row.key))},
                    {"listed", is_listed},
                    {"description", text_or_null(is_listed ? module.text(row.group->description) : "")},
                    {"mesh", text_or_null(module.text(row.mesh))},
                    {"mesh_dims", dims},
                    {"ranks", is_listed ? Json(row.group->ranks) : Json(nullptr)},
                    {"calls", row.calls()},
                    {"input_bytes", row.input_bytes()},
                    {"moved_bytes", row.moved_bytes()},
                    {"collectives", collectives_json(summary, row)}});
  }
  return json;
}

Json peaks_json(const GraphSummary& summary) {
  return json_list(summary.peaks, [&](const IdealPeak& row) -> Json {
    return {{"device", summary.graph->module().text(row.device)},
            {"model", "ideal"},
            {"bytes", row.bytes},
            {"node", row.node.is_valid() ? Json(summary.graph->name_of(row.node)) : Json(nullptr)}};
  });
}

Json opaque_json(const GraphSummary& summary) {
  return json_list(summary.opaque, [&](const OpaqueRow& row) -> Json {
    return {{"what", row.what},
            {"why", opaque_reason_text(row.reason)},
            {"nodes", row.count},
            {"first", summary.graph->name_of(row.first)}};
  });
}

// The counts that scripts look up by name.
void add_counts(const GraphSummary& summary, Json& json) {
  const Module& module = summary.graph->module();
  json["phases"] = counts_json(summary.stored_phases);
  json["tags"] = counts_json(summary.tags);
  json["inputs"] = Json::object();
  for (const InputRow& row : summary.inputs) json["inputs"][enum_text(row.role)] = row.nodes;
  json["outputs"] = counts_json(summary.outputs);
  json["dtypes"] = Json::object();
  for (const DTypeRow& row : summary.dtypes) json["dtypes"][enum_text(row.dtype)] = row.tensors;
  json["collectives"] = Json::object();
  for (const GroupRow& row : summary.groups) {
    const std::string name = group_text(module, row.key);
    json["collectives"][name.empty() ? "(unnamed)" : name] = row.calls();
  }
  json["opaque"] = Json::object();
  json["calls"] = Json::object();
  for (const OpRow& row : summary.ops) {
    const std::string name(target_name(summary, row.target));
    json["calls"][name] = row.calls;
    if (module.target(row.target).op->is_opaque()) json["opaque"][name] = row.calls;
  }
  json["effects"] = Json::object();
  for (const auto& [effect, count] : summary.effects)
    json["effects"][std::string(effect_names(effect).front())] = count;
}

}  // namespace

nlohmann::ordered_json summary_json(const GraphSummary& summary, const SummaryView& view) {
  const Graph& graph = *summary.graph;
  Json json = {{"graph", graph.module().text(graph.name())},
               {"kind", enum_text(graph.kind)},
               {"is_part", summary.is_part},
               {"nodes", summary.nodes},
               {"edges", summary.edges},
               {"edges_in", summary.edges_in},
               {"edges_out", summary.edges_out}};
  add_counts(summary, json);
  json["phases_derived"] = summary.phases_derived;
  json["roles_derived"] = summary.roles_derived;
  json["by_role"] = inputs_json(summary);
  json["by_phase"] = json_list(summary.phases, phase_row_json);
  json["module_depth"] = module_depth(summary, view);
  json["by_module"] = by_module_json(summary, view);
  json["by_kind"] = by_kind_json(summary);
  json["by_op"] = by_op_json(summary);
  json["by_dtype"] = json_list(summary.dtypes, dtype_row_json);
  json["by_group"] = by_group_json(summary);
  json["why_opaque"] = opaque_json(summary);
  if (summary.validity == Validity::kBroken) return json;
  json["storages"] = sum_json(summary.storages);
  json["made"] = sum_json(summary.made);
  json["unknown_nodes"] = names_json(graph, summary.unknown_nodes);
  json["peaks"] = peaks_json(summary);
  return json;
}

}  // namespace fxopt
