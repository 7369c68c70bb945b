#include "cli/report/stats.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/print/json.h"
#include "cli/print/json_list.h"
#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/text.h"
#include "ir/alias/storages.h"
#include "ir/graph/top_level.h"
#include "ir/memory/memory.h"
#include "ir/step/origins.h"

namespace fxopt {
namespace {

constexpr size_t kMaxOpRows = 12;

int64_t count_of(const std::map<std::string, int64_t>& counts, const std::string& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

struct OpChange {
  std::string target;
  int64_t before = 0;
  int64_t after = 0;
  int64_t size() const { return std::abs(after - before); }
};

// Returns the targets whose count changed. The largest change comes first, and equal changes are in
// order of name.
std::vector<OpChange> op_changes(const ModuleStats& before, const ModuleStats& after) {
  std::vector<OpChange> changes;
  for (const auto& [target, count] : before.ops) changes.push_back({target, count, count_of(after.ops, target)});
  for (const auto& [target, count] : after.ops) {
    if (!before.ops.contains(target)) changes.push_back({target, 0, count});
  }
  std::erase_if(changes, [](const OpChange& change) { return change.size() == 0; });
  std::sort(changes.begin(), changes.end(), [](const OpChange& a, const OpChange& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.target < b.target;
  });
  return changes;
}

std::string peak_name(const PeakBytes& peak) {
  return peak.metric + " peak, " + (peak.device.empty() ? "no device" : peak.device) + ", @" + peak.graph;
}

void add_number(Table& table, const std::string& name, size_t before, size_t after) {
  table.add({name, std::to_string(before), std::to_string(after),
             signed_text(static_cast<int64_t>(after) - static_cast<int64_t>(before))});
}

bool has_graph(const std::vector<PeakBytes>& peaks, const std::string& graph) {
  return std::any_of(peaks.begin(), peaks.end(), [&graph](const PeakBytes& peak) { return peak.graph == graph; });
}

// Prints the peaks of the input in order, then the peaks of graphs that a pass created. A graph
// that a pass erased has no peak, so "-" is printed instead of 0 B.
void print_peaks(Table& table, const OptReport& report) {
  using Place = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<Place, const PeakBytes*> after;
  const auto place = [](const PeakBytes& peak) { return Place(peak.metric, peak.graph, peak.device); };
  const auto text = [](const PeakBytes& peak, size_t unknown) {
    return peak.cut ? "runs out" : (unknown > 0 ? "at least " : "") + bytes_text(peak.bytes);
  };
  for (const PeakBytes& peak : report.after.peaks) after.emplace(place(peak), &peak);
  for (const PeakBytes& before : report.before.peaks) {
    if (!has_graph(report.after.peaks, before.graph)) {
      table.add({peak_name(before), text(before, before.unknown_buffers), "-", ""});
      continue;
    }
    const PeakBytes* found = after[place(before)];
    const PeakBytes then = found == nullptr ? PeakBytes() : *found;
    const bool has_both = !before.cut && !then.cut;
    table.add({peak_name(before), text(before, before.unknown_buffers), text(then, before.unknown_buffers),
               has_both ? percent_text(then.bytes - before.bytes, before.bytes) : ""});
  }
  for (const PeakBytes& peak : report.after.peaks) {
    if (has_graph(report.before.peaks, peak.graph)) continue;
    table.add({peak_name(peak), "-", text(peak, peak.unknown_buffers), ""});
  }
}

std::string counters_text(const StepReport& step) {
  std::string text;
  for (const auto& [name, amount] : step.result.counters()) text += " " + name + "=" + std::to_string(amount);
  for (const auto& [name, amount] : step.result.notes()) text += " (" + name + "=" + std::to_string(amount) + ")";
  if (!step.result.remarks().empty()) text += " (remarks=" + std::to_string(step.result.remarks().size()) + ")";
  return text.empty() ? "unchanged" : text.substr(1);
}

// Returns text such as "analyses made: storages 4, phases 2".
std::string analyses_text(const FactCounts& analyses) {
  std::vector<std::string> parts;
  FactCounts::visit(analyses, [&](const char* name, size_t count) {
    if (count > 0) parts.push_back(std::string(name) + " " + std::to_string(count));
  });
  return parts.empty() ? "" : "analyses made: " + join(parts, ", ");
}

nlohmann::ordered_json stats_json(const ModuleStats& stats) {
  nlohmann::ordered_json peaks = nlohmann::ordered_json::array();
  for (const PeakBytes& peak : stats.peaks) {
    peaks.push_back({{"model", peak.metric},
                     {"graph", peak.graph},
                     {"device", peak.device},
                     {"bytes", peak.cut ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(peak.bytes)},
                     {"unknown_storages", peak.unknown_buffers}});
  }
  return {{"nodes", stats.nodes}, {"edges", stats.edges}, {"recomputed", stats.recomputed}, {"peaks", peaks}};
}

nlohmann::ordered_json remarks_json(const StepReport& step, Remarks remarks) {
  if (remarks == Remarks::kCounted) {
    std::map<std::string, int64_t> counts;
    for (const PassRemark& remark : step.result.remarks()) ++counts[remark.code];
    return counts;
  }
  return json_list(step.result.remarks(), [](const PassRemark& remark) -> nlohmann::ordered_json {
    return {{"code", remark.code}, {"node", remark.node_name}, {"text", remark.text}};
  });
}

}  // namespace

void add_peaks(Facts& facts, const PeakView& view, std::vector<PeakBytes>& peaks) {
  const Graph& graph = facts.graph();
  const Module& module = graph.module();
  const auto add = [&](MemoryMetric metric, StringId device, FootprintPeak peak, size_t unknown) {
    peaks.push_back({std::string(metric_name(metric)), std::string(module.text(graph.name())),
                     std::string(module.text(device)), peak.bytes, peak.cut, unknown});
  };
  if (view.ideal_alone) {
    const MemoryReport report = analyze_memory(graph, facts.storages(), view.measure.memory, &facts.phases());
    for (const DevicePeak& device : report.devices) {
      add(MemoryMetric::kIdeal, device.device, {device.bytes, {}, false}, report.unknown_buffers);
    }
    return;
  }
  const Footprint footprint = measure(graph, view.measure);
  for (const DeviceFootprint& device : footprint.devices) {
    for (size_t i = 0; i < kNumMemoryMetrics; ++i) {
      const MemoryMetric metric = static_cast<MemoryMetric>(i);
      const std::optional<FootprintPeak> peak = device.peak(metric, view.measure.allocator.expandable_segments);
      if (peak.has_value()) add(metric, device.device, *peak, footprint.memory.unknown_buffers);
    }
  }
}

ModuleStats module_stats(const Module& module, ModuleFacts& facts, const PeakView& view) {
  ModuleStats stats;
  IdMap<TargetId, int64_t> calls(module.num_targets());
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    stats.nodes += graph.num_nodes();
    stats.edges += graph.num_edges();
    for (const NodeId node : graph.nodes()) {
      if (graph[node].is_call() && graph[node].target.is_valid()) ++calls[graph[node].target];
      if (is_recomputed(graph, node)) ++stats.recomputed;
    }
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const int64_t count = calls.get(TargetId(i));
    if (count > 0) stats.ops[std::string(module.text(module.target(TargetId(i)).name))] += count;
  }
  for (const GraphId id : top_level_graphs(module)) add_peaks(facts.of(module.graph(id)), view, stats.peaks);
  return stats;
}

void print_opt_report(std::ostream& out, const OptReport& report, Timing timing) {
  out << printable_line(report.file) << " -> " << printable_line(report.output) << '\n';
  Table numbers({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  numbers.add({"", "before", "after", "change"});
  add_number(numbers, "nodes", report.before.nodes, report.after.nodes);
  add_number(numbers, "edges", report.before.edges, report.after.edges);
  add_number(numbers, "nodes recomputed", report.before.recomputed, report.after.recomputed);
  print_peaks(numbers, report);
  numbers.print(out);

  print_passes(out, report, timing);
  if (!report.proof.empty()) out << report.proof << '\n';
  if (report.lowered != ControlDepsResult{}) {
    out << "control_deps  " << report.lowered.done << " lowered to control dependencies, " << report.lowered.left
        << " not lowered\n";
  }
  const std::vector<OpChange> changes = op_changes(report.before, report.after);
  Table ops({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  for (size_t i = 0; i < changes.size() && i < kMaxOpRows; ++i) {
    const OpChange& change = changes[i];
    ops.add({change.target, std::to_string(change.before), std::to_string(change.after),
             signed_text(change.after - change.before)});
  }
  if (!ops.empty()) out << "calls\n";
  ops.print(out);
  if (changes.size() > kMaxOpRows) out << "  and " << changes.size() - kMaxOpRows << " more targets\n";
  for (const auto& [title, counts] : {std::pair("tags\n", &report.verdicts), std::pair("marks\n", &report.marks)}) {
    if (!counts->empty()) out << title;
    Table verdicts({Align::kLeft, Align::kRight});
    for (const auto& [verdict, count] : *counts) verdicts.add({verdict, std::to_string(count)});
    verdicts.print(out);
  }
}

void print_passes(std::ostream& out, const OptReport& report, Timing timing) {
  Table table({Align::kLeft, Align::kRight, Align::kLeft});
  double checks = 0;
  double total = report.times.load + report.times.verify + report.times.write;
  for (const StepReport& step : report.steps) {
    table.add({step.pass, timing == Timing::kOn ? seconds_text(step.seconds) : "", counters_text(step)});
    checks += step.check_seconds;
    total += step.seconds + step.check_seconds;
  }
  if (timing == Timing::kOn) {
    table.add({"checks", seconds_text(checks),
               "after each pass: the verifier, and a check that the pass reports its changes"});
    table.add({"load", seconds_text(report.times.load)});
    table.add({"verify", seconds_text(report.times.verify)});
    table.add({"write", seconds_text(report.times.write)});
    table.add({"total", seconds_text(total), analyses_text(report.analyses)});
  }
  if (!table.empty()) out << "passes\n";
  table.print(out);
}

void print_remarks(std::ostream& out, const std::vector<StepReport>& steps) {
  for (const StepReport& step : steps) {
    for (const PassRemark& remark : step.result.remarks()) {
      out << "remark[" << remark.code << "]: " << step.pass << ": ";
      if (!remark.node_name.empty()) out << '%' << printable_line(remark.node_name) << ": ";
      out << printable_line(remark.text) << '\n';
    }
  }
}

void print_remark_counts(std::ostream& out, const std::vector<StepReport>& steps) {
  std::string text;
  for (const StepReport& step : steps) {
    const std::vector<PassRemark>& remarks = step.result.remarks();
    const auto count = std::count_if(remarks.begin(), remarks.end(), [](const auto& each) { return !each.is_warning; });
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " by " + std::string(step.pass);
  }
  if (!text.empty()) out << "remarks: " << text << " (--explain prints them)\n";
}

nlohmann::ordered_json opt_report_json(const OptReport& report, Timing timing, Remarks remarks) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const StepReport& step : report.steps) {
    nlohmann::ordered_json row = {
        {"pass", step.pass},
        {"changed", step.result.changed()},
        {"nodes_before", step.nodes_before},
        {"nodes_after", step.nodes_after},
        {"proof", name_of(step.proof)},
        {"counters", step.result.counters()},
        {"notes", step.result.notes()},
        {"remarks", remarks_json(step, remarks)},
    };
    if (timing == Timing::kOn) {
      row["seconds"] = step.seconds;
      row["check_seconds"] = step.check_seconds;
    }
    steps.push_back(std::move(row));
  }
  const auto op_json = [](const OpChange& change) -> nlohmann::ordered_json {
    return {{"target", change.target}, {"before", change.before}, {"after", change.after}};
  };
  nlohmann::ordered_json json = {
      {"file", report.file},
      {"output", report.output},
      {"pipeline", report.pipeline},
      {"control_deps", {{"lowered", report.lowered.done}, {"left", report.lowered.left}}},
      {"before", stats_json(report.before)},
      {"after", stats_json(report.after)},
      {"calls_changed", json_list(op_changes(report.before, report.after), op_json)},
      {"tags", report.verdicts},
      {"marks", report.marks},
      {"tags_without_effect", report.tags_without_effect},
      {"passes", steps},
  };
  if (timing == Timing::kOn) {
    json["seconds"] = {{"load", report.times.load}, {"verify", report.times.verify}, {"write", report.times.write}};
    FactCounts::visit(report.analyses, [&](const char* name, size_t count) { json["analyses"][name] = count; });
  }
  return json;
}

}  // namespace fxopt
