#include "cli/report/summary.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "cli/print/nodes.h"
#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/saturate.h"
#include "core/text.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

constexpr size_t kNamesInLine = 5;   // names of nodes in a line
constexpr size_t kMaxOpsOfKind = 3;  // named in the row of a kind of operator

std::string lower_bound_text(std::string text, size_t known, size_t unknown) {
  if (unknown == 0) return text;
  return known == 0 ? "unknown" : "at least " + text;
}

// Returns text such as "at least 1.20 MiB (1258291 B), 3 by hint". Returns "-" if there is no
// storage.
std::string sum_text(const StorageSum& sum) {
  if (sum.storages == 0) return "-";
  std::string text = lower_bound_text(bytes_text(sum.bytes), sum.storages - sum.unknown, sum.unknown);
  if (sum.by_hint > 0) text += ", " + std::to_string(sum.by_hint) + " by hint";
  return text;
}

// A broken graph has no known storages, so the column and its title are empty.
std::string made_text(const GraphSummary& summary, const StorageSum& sum) {
  return summary.validity == Validity::kValid ? sum_text(sum) : "";
}
std::string made_title(const GraphSummary& summary, const char* title) {
  return summary.validity == Validity::kValid ? title : "";
}

std::string storages_text(const StorageSum& sum) {
  std::string text = std::to_string(sum.storages);
  if (sum.storages > 0) text += ", " + sum_text(sum);
  if (sum.unknown > 0) text += ", " + std::to_string(sum.unknown) + " of unknown size";
  return text;
}

std::string elements_text(int64_t elements, size_t tensors, size_t unknown) {
  if (tensors == 0) return "-";
  return lower_bound_text(std::to_string(elements), tensors - unknown, unknown);
}

// Returns text such as "12 a, 3 b". The largest count comes first. Equal counts are in the
// order of the enumeration.
template <class E>
std::string counts_text(const std::map<E, size_t>& counts) {
  std::vector<std::pair<E, size_t>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (const auto& [value, count] : rows) parts.push_back(std::to_string(count) + " " + enum_text(value));
  return join(parts, ", ");
}

std::string shown_target(const GraphSummary& summary, TargetId target) {
  const Module& module = summary.graph->module();
  return std::string(module.text(module.target(target).name));
}

std::string names_text(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::string text;
  for (size_t i = 0; i < std::min(nodes.size(), kNamesInLine); ++i) {
    text += (i == 0 ? "%" : ", %") + std::string(graph.name_of(nodes[i]));
  }
  if (nodes.size() > kNamesInLine) text += " and " + std::to_string(nodes.size() - kNamesInLine) + " more";
  return text;
}

// If a list of `count` rows was cut, prints text such as "and 3 more ops". `rest` is the text with
// the sums of the omitted rows.
void print_rest(std::ostream& out, size_t count, size_t top, std::string_view noun, const std::string& rest) {
  if (count <= top) return;
  const size_t left = count - top;
  out << "    and " << left << " more " << noun << (left == 1 ? "" : "s") << (rest.empty() ? "" : ": ") << rest << '\n';
}

// The columns that count calls or nodes by phase. A graph of one phase has no such columns.
class PhaseColumns {
 public:
  explicit PhaseColumns(const GraphSummary& summary) {
    if (summary.phases.size() < 2) return;
    for (const PhaseRow& row : summary.phases) phases_.push_back(row.phase);
  }

  size_t size() const { return phases_.size(); }
  void add_titles(std::vector<std::string>& cells) const {
    for (const Phase phase : phases_) cells.emplace_back(name_of(phase));
  }
  void add(std::vector<std::string>& cells, const PhaseCounts& counts) const {
    for (const Phase phase : phases_) cells.push_back(std::to_string(counts[static_cast<size_t>(phase)]));
  }

 private:
  std::vector<Phase> phases_;
};

// Returns columns for a name, numbers, bytes and, if `has_words`, words.
std::vector<Align> columns(size_t numbers, bool has_words) {
  std::vector<Align> all(numbers + 1, Align::kRight);
  all.front() = Align::kLeft;
  all.push_back(Align::kLeft);
  if (has_words) all.push_back(Align::kLeft);
  return all;
}

void print_totals(std::ostream& out, const GraphSummary& summary) {
  const Graph& graph = *summary.graph;
  Table table({Align::kLeft, Align::kLeft});
  for (const IdealPeak& peak : summary.peaks) {
    const std::string_view device = graph.module().text(peak.device);
    table.add({"ideal peak", std::string(device.empty() ? "no device" : device) + ": " +
                                 (summary.storages.unknown > 0 ? "at least " : "") + bytes_text(peak.bytes) +
                                 (summary.storages.by_hint > 0 ? ", by hints" : "") +
                                 (peak.node.is_valid() ? ", at %" + std::string(graph.name_of(peak.node)) : "")});
  }
  if (summary.validity == Validity::kValid) {
    table.add({"storages", storages_text(summary.storages)});
    table.add({"made by nodes", storages_text(summary.made)});
  }
  if (!summary.unknown_nodes.empty())
    table.add({"sizes unknown", "made by " + names_text(graph, summary.unknown_nodes)});
  if (!summary.outputs.empty()) table.add({"outputs", counts_text(summary.outputs)});
  if (!summary.tags.empty()) table.add({"tags", counts_text(summary.tags)});
  std::vector<std::string> effects;
  for (const auto& [effect, count] : summary.effects) {
    effects.push_back(std::to_string(count) + " " + std::string(effect_names(effect).front()));
  }
  if (!effects.empty()) table.add({"effects of calls", join(effects, ", ")});
  table.print(out);
}

std::string input_notes(const InputRow& row) {
  std::vector<std::string> notes;
  if (row.tied > 0) notes.push_back(std::to_string(row.tied) + " tied to another input, counted once");
  if (row.parts > 0) notes.push_back(count_text(row.parts, "part") + " of tensor subclasses");
  const size_t others = row.nodes - row.tensors - row.tied;
  if (others > 0) notes.push_back(std::to_string(others) + " without a tensor");
  return join(notes, "; ");
}

void add_input_row(Table& table, const GraphSummary& summary, const std::string& name, const InputRow& row) {
  table.add({name, std::to_string(row.nodes), std::to_string(row.tensors),
             elements_text(row.elements, row.tensors, row.unknown_elements), made_text(summary, row.storages),
             counts_text(row.dtypes), input_notes(row)});
}

void print_inputs(std::ostream& out, const GraphSummary& summary) {
  if (summary.inputs.empty() && summary.attributes.nodes == 0) return;
  out << "  inputs" << (summary.roles_derived ? " (roles derived: the file gives none)" : "") << '\n';
  Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft}, 4);
  table.add({"role", "nodes", "tensors", "elements", made_title(summary, "bytes"), "types", ""});
  for (const InputRow& row : summary.inputs) add_input_row(table, summary, enum_text(row.role), row);
  if (summary.attributes.nodes > 0) add_input_row(table, summary, "attribute", summary.attributes);
  table.print(out);
}

void print_phases(std::ostream& out, const GraphSummary& summary) {
  if (summary.phases.size() < 2) return;
  out << "  phases" << (summary.phases_derived ? " (derived: the file marks none)" : "") << '\n';
  Table table(columns(2, false), 4);
  table.add({"phase", "nodes", "calls", made_title(summary, "made")});
  for (const PhaseRow& row : summary.phases) {
    table.add({std::string(name_of(row.phase)), std::to_string(row.nodes), std::to_string(row.calls),
               made_text(summary, row.made)});
  }
  table.print(out);
}

std::string module_name(const ModuleRow& row) {
  std::string name(2 * (row.depth - 1), ' ');
  name += row.path.empty() ? "(no module)" : row.name;
  return row.siblings > 1 ? name + " (" + std::to_string(row.siblings) + " alike)" : name;
}

// Returns the number of nodes in the omitted rows. A row includes its submodules, so rows below
// another omitted row are skipped.
std::string left_out_modules(const std::vector<ModuleRow>& rows, size_t top) {
  size_t nodes = 0, depth = SIZE_MAX;
  for (size_t i = top; i < rows.size(); ++i) {
    if (rows[i].depth > depth) continue;
    depth = rows[i].depth;
    nodes += rows[i].figures.nodes;
  }
  return count_text(nodes, "node");
}

void print_modules(std::ostream& out, const GraphSummary& summary, const SummaryView& view) {
  const std::vector<ModuleRow> rows = summary.modules.rows(module_depth(summary, view));
  const bool is_worth_it =
      std::any_of(rows.begin(), rows.end(), [](const ModuleRow& row) { return !row.path.empty(); });
  if (!is_worth_it) return;
  const PhaseColumns phases(summary);
  out << "  modules (identical numbered modules share a row; each row includes its submodules)\n";
  Table table(columns(2 + phases.size(), false), 4);
  std::vector<std::string> titles{"module", "nodes"};
  phases.add_titles(titles);
  titles.insert(titles.end(), {"parameter elements", made_title(summary, "made")});
  table.add(std::move(titles));
  for (size_t i = 0; i < std::min(rows.size(), view.top); ++i) {
    const ModuleFigures& figures = rows[i].figures;
    std::vector<std::string> cells{module_name(rows[i]), std::to_string(figures.nodes)};
    phases.add(cells, figures.phases);
    cells.push_back(elements_text(figures.elements, figures.parameters, figures.unknown_elements));
    cells.push_back(made_text(summary, figures.made));
    table.add(std::move(cells));
  }
  table.print(out);
  print_rest(out, rows.size(), view.top, "row", left_out_modules(rows, view.top));
}

std::string ops_text(const GraphSummary& summary, const KindRow& row) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(row.ops.size(), kMaxOpsOfKind); ++i) {
    const OpRow& op = summary.ops[row.ops[i]];
    parts.push_back(std::to_string(op.calls) + " " + shown_target(summary, op.target));
  }
  if (row.ops.size() > kMaxOpsOfKind) parts.push_back(std::to_string(row.ops.size() - kMaxOpsOfKind) + " more");
  return join(parts, ", ");
}

// Prints the table of calls by kind, or the table of calls by op.
template <class Row, class Name, class Words>
void print_calls(std::ostream& out, const GraphSummary& summary, const std::vector<Row>& rows, const SummaryView& view,
                 const char* title, const Name& name, const Words& words) {
  if (rows.empty()) return;
  const std::string noun = title;
  const PhaseColumns phases(summary);
  out << "  calls by " << noun << " (" << std::min(rows.size(), view.top) << " of " << rows.size() << ")\n";
  Table table(columns(1 + phases.size(), true), 4);
  std::vector<std::string> titles{noun, "calls"};
  phases.add_titles(titles);
  titles.insert(titles.end(), {made_title(summary, "made"), noun == "op" ? "kind" : "ops"});
  table.add(std::move(titles));
  size_t calls = 0;
  StorageSum made;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i >= view.top) {
      calls += rows[i].calls;
      made.add(rows[i].made);
      continue;
    }
    std::vector<std::string> cells{name(rows[i]), std::to_string(rows[i].calls)};
    phases.add(cells, rows[i].phases);
    cells.push_back(made_text(summary, rows[i].made));
    cells.push_back(words(rows[i]));
    table.add(std::move(cells));
  }
  table.print(out);
  print_rest(out, rows.size(), view.top, noun,
             count_text(calls, "call") + (summary.validity == Validity::kValid ? ", made " + sum_text(made) : ""));
}

void print_kinds_and_ops(std::ostream& out, const GraphSummary& summary, const SummaryView& view) {
  print_calls(
      out, summary, summary.kinds, view, "kind",
      [](const KindRow& row) { return std::string(compute_class_name(row.kind)); },
      [&summary](const KindRow& row) { return ops_text(summary, row); });
  print_calls(
      out, summary, summary.ops, view, "op", [&summary](const OpRow& row) { return shown_target(summary, row.target); },
      [](const OpRow& row) { return std::string(compute_class_name(row.kind)); });
}

std::string shown_group(const GraphSummary& summary, const GroupKey& key) {
  const std::string text = group_text(summary.graph->module(), key);
  return text.empty() ? "(unnamed)" : text;
}

// Returns the mesh dimensions of a group, such as "dp of world". Without a mesh, returns the
// description with which the group was created.
std::string mesh_text(const GraphSummary& summary, const GroupRow& row) {
  const Module& module = summary.graph->module();
  if (row.group == nullptr) return row.key.uid.is_valid() ? "(not listed)" : "";
  std::vector<std::string> dims;
  for (const StringId dim : row.mesh_dims) dims.emplace_back(module.text(dim));
  if (dims.empty()) return std::string(module.text(row.group->description));
  const std::string_view mesh = module.text(row.mesh);
  return join(dims, ", ") + (mesh.empty() ? "" : " of " + std::string(mesh));
}

std::string amount_text(int64_t bytes, size_t calls, size_t unknown, size_t by_hint) {
  return sum_text({calls, bytes, unknown, by_hint});
}

// True if passes merged several collectives into one.
bool stand_for_more(const GraphSummary& summary) {
  for (const GroupRow& group : summary.groups) {
    for (const CollectiveRow& row : group.collectives) {
      if (row.replaces != row.calls) return true;
    }
  }
  return false;
}

std::vector<std::string> collective_cells(const GraphSummary& summary, const GroupRow& group, size_t index,
                                          bool tells_of) {
  const CollectiveRow& row = group.collectives[index];
  std::vector<std::string> cells(3);
  if (index == 0) {
    cells = {shown_group(summary, group.key), mesh_text(summary, group),
             group.group == nullptr
                 ? "unknown"
                 : std::to_string(group.group->ranks.size()) + ": " + format_numbers(group.group->ranks)};
  }
  cells.insert(cells.end(), {shown_target(summary, row.target), std::to_string(row.calls)});
  if (tells_of) cells.push_back(std::to_string(row.replaces));
  cells.insert(cells.end(), {amount_text(row.input_bytes, row.calls, row.unknown_input, row.by_hint),
                             amount_text(row.moved_bytes, row.calls, row.unknown_moved, 0)});
  return cells;
}

void print_collectives(std::ostream& out, const GraphSummary& summary, const SummaryView& view) {
  if (summary.groups.empty()) return;
  out << "  collectives by group (moved: bytes that a rank sends around a ring)\n";
  std::vector<Align> align = {Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight};
  std::vector<std::string> titles = {"group", "name", "ranks", "op", "calls"};
  const bool tells_of = stand_for_more(summary);
  if (tells_of) {
    align.push_back(Align::kRight);
    titles.push_back("made of");
  }
  align.insert(align.end(), {Align::kLeft, Align::kLeft});
  titles.insert(titles.end(), {"in", "moved"});
  Table table(align, 4);
  table.add(titles);
  size_t shown = 0, calls = 0;
  StorageSum input, moved;
  for (const GroupRow& group : summary.groups) {
    for (size_t i = 0; i < group.collectives.size(); ++i, ++shown) {
      const CollectiveRow& row = group.collectives[i];
      if (shown < view.top) {
        table.add(collective_cells(summary, group, i, tells_of));
        continue;
      }
      calls += row.calls;
      input.add({row.calls, row.input_bytes, row.unknown_input, row.by_hint});
      moved.add({row.calls, row.moved_bytes, row.unknown_moved, 0});
    }
  }
  table.print(out);
  print_rest(out, shown, view.top, "row",
             count_text(calls, "call") + ", in " + sum_text(input) + ", moved " + sum_text(moved));
}

void print_dtypes(std::ostream& out, const GraphSummary& summary) {
  if (summary.dtypes.empty()) return;
  out << "  tensors by type\n";
  Table table(columns(1, false), 4);
  table.add({"type", "tensors", made_title(summary, "storages")});
  for (const DTypeRow& row : summary.dtypes) {
    table.add({enum_text(row.dtype), std::to_string(row.tensors), made_text(summary, row.storages)});
  }
  table.print(out);
}

void print_opaque(std::ostream& out, const GraphSummary& summary, const SummaryView& view) {
  if (summary.opaque.empty()) return;
  out << "  opaque: passes assume the worst\n";
  Table table({Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft}, 4);
  size_t nodes = 0;
  for (size_t i = 0; i < summary.opaque.size(); ++i) {
    const OpaqueRow& row = summary.opaque[i];
    if (i >= view.top) {
      nodes += row.count;
      continue;
    }
    table.add({std::to_string(row.count), row.what, std::string(opaque_reason_text(row.reason)),
               "first %" + std::string(summary.graph->name_of(row.first))});
  }
  table.print(out);
  print_rest(out, summary.opaque.size(), view.top, "row", count_text(nodes, "node"));
}

}  // namespace

size_t module_depth(const GraphSummary& summary, const SummaryView& view) {
  return view.module_depth.has_value() ? *view.module_depth : summary.modules.fitting_depth(view.top);
}

void print_summary(std::ostream& out, const GraphSummary& summary, const SummaryView& view) {
  const Graph& graph = *summary.graph;
  out << '@' << printable_line(graph.module().text(graph.name())) << ", " << enum_text(graph.kind) << ": "
      << count_text(summary.nodes, "node");
  if (summary.is_part) out << " of " << graph.num_nodes();
  out << ", " << count_text(summary.edges, "edge");
  if (summary.is_part) out << " (" << summary.edges_in << " in, " << summary.edges_out << " out)";
  out << ", " << count_text(summary.calls, "call") << '\n';
  print_totals(out, summary);
  print_inputs(out, summary);
  print_phases(out, summary);
  print_modules(out, summary, view);
  print_kinds_and_ops(out, summary, view);
  print_collectives(out, summary, view);
  print_dtypes(out, summary);
  print_opaque(out, summary, view);
}

void print_subgraphs(std::ostream& out, const std::vector<GraphSummary>& summaries, const SummaryView& view) {
  if (summaries.empty()) return;
  std::map<std::vector<std::pair<TargetId, size_t>>, size_t> index;  // calls -> row
  std::vector<std::pair<const GraphSummary*, size_t>> rows;          // the first summary, count
  for (const GraphSummary& summary : summaries) {
    std::vector<std::pair<TargetId, size_t>> calls;
    for (const OpRow& row : summary.ops) calls.emplace_back(row.target, row.calls);
    std::sort(calls.begin(), calls.end());
    calls.emplace_back(TargetId(), summary.nodes);
    const auto& [place, is_new] = index.emplace(std::move(calls), rows.size());
    if (is_new) rows.emplace_back(&summary, 0);
    ++rows[place->second].second;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  out << count_text(summaries.size(), "subgraph") << ", run by ops of the graphs above\n";
  Table table({Align::kRight, Align::kLeft, Align::kRight, Align::kLeft});
  size_t rest = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [summary, count] = rows[i];
    if (i >= view.top) {
      rest += count;
      continue;
    }
    KindRow all;
    for (size_t op = 0; op < summary->ops.size(); ++op) all.ops.push_back(op);
    table.add({std::to_string(count), "@" + std::string(summary->graph->module().text(summary->graph->name())),
               count_text(summary->nodes, "node"), ops_text(*summary, all)});
  }
  table.print(out);
  print_rest(out, rows.size(), view.top, "row", count_text(rest, "subgraph"));
}

}  // namespace fxopt
