#include "cli/report/summary.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/report/json.h"
#include "cli/report/table.h"
#include "core/saturate.h"
#include "ir/analysis/memory.h"
#include "ir/analysis/storages.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

template <class E>
std::string name_or_number(E value) {
  const std::string_view name = name_of(value);
  return name.empty() ? "?" + std::to_string(static_cast<unsigned>(value)) : std::string(name);
}

// The group an argument names; nothing when it names none.
std::optional<std::string> named_group(const Graph& graph, const Arg& arg) {
  if (arg.is(ArgKind::kGroup)) return std::string(graph.module().text(arg.as_string()));
  if (arg.is(ArgKind::kGroupExpr)) return graph.module().exprs.to_string(arg.as_expr());
  return std::nullopt;
}

// The group a collective runs on: an argument that is one, else the last string, which is where the framework puts it.
std::string group_of(const Graph& graph, NodeId node) {
  std::string group = "(unnamed)";
  const std::span<const Arg> args = graph.pool().args(graph[node].args);
  const std::span<const Arg> kwargs = graph.pool().args(graph[node].kwargs);  // key, value, ...
  for (size_t i = 0; i < args.size() + kwargs.size() / 2; ++i) {
    const Arg& arg = i < args.size() ? args[i] : kwargs[2 * (i - args.size()) + 1];
    if (const std::optional<std::string> named = named_group(graph, arg)) return *named;
    if (arg.is(ArgKind::kString)) group = graph.module().text(arg.as_string());
  }
  return group;
}

void count_dtypes(const Graph& graph, NodeId node, Counts& counts) {
  std::vector<const Value*> stack{&graph.value(node)};
  while (!stack.empty()) {
    const Value& value = *stack.back();
    stack.pop_back();
    if (value.kind == ValueKind::kTensor) ++counts[name_or_number(graph.pool().tensor(value).dtype)];
    const bool has_children =
        value.kind == ValueKind::kTuple || value.kind == ValueKind::kList || value.kind == ValueKind::kDict;
    if (!has_children) continue;
    for (const Value& child : graph.pool().children(value)) stack.push_back(&child);
  }
}

void count_node(const Graph& graph, NodeId id, GraphSummary& summary) {
  const Node& node = graph[id];
  ++summary.phases[name_or_number(node.phase)];
  if (node.tag != Tag::kNone) ++summary.tags[name_or_number(node.tag)];
  count_dtypes(graph, id, summary.dtypes);
  if (node.kind == NodeKind::kPlaceholder) {
    const NodeExtra* extra = graph.extra(id);
    const bool has_role = extra != nullptr && extra->input.has_value();
    ++summary.inputs[name_or_number(has_role ? extra->input->role : InputRole::kUnspecified)];
  }
  if (!node.is_call()) return;
  const std::string target(graph.module().text(graph.module().target(node.target).name));
  ++summary.ops[target];
  const Op& op = graph.op(id);
  if (op.is_opaque()) ++summary.opaque[target];
  if (op.has(Effect::kCollective)) ++summary.collectives[group_of(graph, id)];
}

void count_storages(const Graph& graph, GraphSummary& summary) {
  const StorageMap storages(graph);
  const MemoryReport report = analyze_memory(graph, storages);
  summary.has_storages = true;
  summary.storages = storages.num_buffers();
  summary.unknown_storages = report.unknown_buffers;
  for (const Lifetime& lifetime : report.lifetimes) {
    summary.storage_bytes = saturating_add(summary.storage_bytes, lifetime.bytes);
  }
}

// Most frequent first, ties by name.
void print_counts(std::ostream& out, std::string_view title, const Counts& counts) {
  if (counts.empty()) return;
  std::vector<std::pair<std::string, int64_t>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({Align::kRight, Align::kLeft}, 4);
  for (const auto& [name, count] : rows) table.add({std::to_string(count), name});
  out << "  " << title << '\n';
  table.print(out);
}

}  // namespace

GraphSummary summarize(const Graph& graph, Validity validity) {
  GraphSummary summary;
  summary.graph = graph.module().text(graph.name());
  summary.kind = name_or_number(graph.kind);
  summary.nodes = graph.num_nodes();
  summary.edges = graph.num_edges();
  for (const NodeId node : graph.nodes()) count_node(graph, node, summary);
  for (const OutputSpec& output : graph.outputs) ++summary.outputs[name_or_number(output.role)];
  if (validity == Validity::kValid) count_storages(graph, summary);
  return summary;
}

void print_summary(std::ostream& out, const GraphSummary& summary) {
  out << '@' << printable_line(summary.graph) << ", " << summary.kind << ": " << count_text(summary.nodes, "node")
      << ", " << count_text(summary.edges, "edge") << '\n';
  if (summary.has_storages) {
    out << "  " << count_text(summary.storages, "storage") << ", " << bytes_text(summary.storage_bytes) << " in all";
    if (summary.unknown_storages > 0) out << ", " << summary.unknown_storages << " of unknown size";
    out << '\n';
  }
  print_counts(out, "phases", summary.phases);
  print_counts(out, "tags", summary.tags);
  print_counts(out, "inputs", summary.inputs);
  print_counts(out, "outputs", summary.outputs);
  print_counts(out, "tensors", summary.dtypes);
  print_counts(out, "collectives by group", summary.collectives);
  print_counts(out, "opaque targets", summary.opaque);
  print_counts(out, "calls", summary.ops);
}

nlohmann::ordered_json summary_json(const GraphSummary& summary) {
  nlohmann::ordered_json json = {{"graph", summary.graph},   {"kind", summary.kind},
                                 {"nodes", summary.nodes},   {"edges", summary.edges},
                                 {"phases", summary.phases}, {"tags", summary.tags},
                                 {"inputs", summary.inputs}, {"outputs", summary.outputs},
                                 {"dtypes", summary.dtypes}, {"collectives", summary.collectives},
                                 {"opaque", summary.opaque}, {"calls", summary.ops}};
  if (!summary.has_storages) return json;
  json["storages"] = {
      {"count", summary.storages}, {"bytes", summary.storage_bytes}, {"unknown", summary.unknown_storages}};
  return json;
}

}  // namespace fxopt
