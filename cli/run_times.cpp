#include "cli/run_times.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/file.h"
#include "core/text.h"
#include "core/version.h"
#include "ir/cost/costs.h"
#include "ir/io/measurement.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

constexpr double kCloseEnough = 0.02;  // relative difference up to which times match

struct Place {
  const Graph* graph = nullptr;
  NodeId node;
};

// Returns the nodes by uid. Plans refer to nodes by uid.
std::unordered_map<uint64_t, Place> places_by_uid(const Module& module) {
  std::unordered_map<uint64_t, Place> places;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) places.emplace(graph[node].uid, Place{&graph, node});
  }
  return places;
}

// The unit of a column of times. The largest time determines the unit, so that times can be
// compared by eye.
struct Unit {
  const char* name;
  double per_second;
  int digits;  // after the point

  static Unit of(double largest_seconds) {
    return largest_seconds >= 10 ? Unit{"s", 1, 3} : largest_seconds >= 10e-3 ? Unit{"ms", 1e3, 3} : Unit{"us", 1e6, 2};
  }
  std::string text(double seconds) const {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, seconds * per_second);
    return text;
  }
};

constexpr Unit kLaunchUnit{"us", 1e6, 2};

// One row of a table: one step of the plan, or all steps of a module or of an operator.
struct Row {
  std::string name;
  size_t steps = 0;
  double device = 0, launch = 0, predicted = 0;
  bool is_predicted = false;
  bool is_too_fast = false;  // faster than the profile's device allows

  void add(const Row& other) {
    steps += other.steps;
    device += other.device;
    launch += other.launch;
    predicted += other.predicted;
    is_predicted = is_predicted || other.is_predicted;
  }
};

class TimeTables {
 public:
  TimeTables(Console& console, const StepTimes& times)
      : console_(console), times_(times), places_(places_by_uid(times.module)) {
    if (times.profile == nullptr) return;
    for (const GraphId id : times.module.graphs()) {
      const Graph& graph = times.module.graph(id);
      costs_.emplace(&graph, CostTable(graph, CostSources{times.profile, nullptr, times.symbols}));
    }
  }

  void report() {
    std::vector<Row> nodes;
    std::map<std::string, Row> modules, operators;
    Row all;
    for (uint32_t i = 0; i < times_.plan.num_steps; ++i) {
      const FxStep& step = times_.plan.steps[i];
      if (times_.steps[i].device_seconds == 0 || step.node == FX_NONE) continue;
      Row row = row_of(i);
      all.add(row);
      const std::string module(text_at(times_.plan, times_.plan.nodes[step.node].module));
      group(modules, module.empty() ? "(no module)" : module, row);
      group(operators, std::string(op_name(times_.plan, step)), row);
      nodes.push_back(std::move(row));
    }
    console_.product() << "one node at a time, " << count_text(times_.runs, "run") << ", " << times_.method << ": "
                       << measured_time_text(all.device) << " in total\n";
    unit_ = Unit::of(all.device);
    if (times_.profile != nullptr && !times_.is_launched)
      console_.product() << "  the step ran on the CPU, but the profile describes another device\n";
    print("module", sorted(values(modules)), all.device);
    print("operator", sorted(values(operators)), all.device);
    print("node", sorted(nodes), all.device);
    compare_sum(all.device);
    name_too_fast(nodes);
    console_.result()["nodes"] = json_of(nodes);
  }

 private:
  Row row_of(uint32_t step) {
    const FxNode& node = times_.plan.nodes[times_.plan.steps[step].node];
    Row row;
    row.name = "%" + std::string(text_at(times_.plan, node.name));
    row.steps = 1;
    row.device = times_.steps[step].device_seconds;
    row.launch = times_.steps[step].launch_seconds;
    const auto place = places_.find(node.uid);
    if (place == places_.end() || costs_.empty()) return row;
    const Cost cost = costs_.at(place->second.graph).of(place->second.node);
    row.predicted = cost.seconds + cost.link_seconds;
    row.is_predicted = row.predicted > 0;
    row.is_too_fast = times_.is_launched && cost.num_kernels(CostBasis::kRoofline) > 0 && row.device < row.predicted;
    return row;
  }

  static void group(std::map<std::string, Row>& groups, const std::string& name, const Row& row) {
    Row& sum = groups[name];
    sum.name = name;
    sum.add(row);
  }
  static std::vector<Row> values(const std::map<std::string, Row>& groups) {
    std::vector<Row> rows;
    for (const auto& [name, row] : groups) rows.push_back(row);
    return rows;
  }
  static std::vector<Row> sorted(std::vector<Row> rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.device > b.device; });
    return rows;
  }

  void print(const std::string& what, const std::vector<Row>& rows, double all) {
    const bool has_predicted = times_.profile != nullptr;
    std::vector<Align> columns{Align::kLeft, Align::kRight, Align::kRight, Align::kRight};
    std::vector<std::string> head{what, "steps", std::string(unit_.name), "share"};
    if (times_.is_launched) {
      columns.push_back(Align::kRight);
      head.push_back("launch, us");
    }
    if (has_predicted) {
      columns.insert(columns.end(), {Align::kRight, Align::kLeft});
      head.insert(head.end(), {"predicted, " + std::string(unit_.name), ""});
    }
    Table table(std::move(columns));
    table.add(std::move(head));
    Row others;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i < times_.shown)
        add(table, rows[i], all);
      else
        others.add(rows[i]);
    }
    others.name = "(" + std::to_string(rows.size() - std::min(rows.size(), times_.shown)) + " more)";
    if (others.steps > 0) add(table, others, all);
    console_.product() << '\n';
    table.print(console_.product());
  }

  void add(Table& table, const Row& row, double all) const {
    std::vector<std::string> cells{row.name, std::to_string(row.steps), unit_.text(row.device),
                                   formatted("%.1f %%", all > 0 ? 100 * row.device / all : 0.0)};
    if (times_.is_launched) cells.push_back(kLaunchUnit.text(row.launch));
    if (times_.profile != nullptr) {
      cells.push_back(row.is_predicted ? unit_.text(row.predicted) : "");
      cells.push_back(row.is_too_fast ? "faster than the profile's device can be" : "");
    }
    table.add(std::move(cells));
  }

  // Compares the sum of the times of all nodes, each run separately, with the time of a normal run.
  void compare_sum(double sum) {
    console_.result()["sum_of_nodes_seconds"] = sum;
    console_.product() << '\n';
    const double difference = times_.step_seconds > 0 ? sum / times_.step_seconds - 1 : 0;
    if (std::fabs(difference) <= kCloseEnough) {
      console_.product() << "  the sum is equal to the time of the step, " << measured_time_text(times_.step_seconds)
                         << ", within 2 %\n";
      return;
    }
    const std::string why =
        difference < 0 ? "the step takes longer than the sum of its nodes, each measured alone"
        : times_.is_launched
            ? "each node starts after the previous one has ended, and each node's time includes its launch"
            : "nodes that run alone wait for each other";
    console_.product() << "  the sum is " << formatted("%.2f", 1 + difference) << " times the step's time of "
                       << measured_time_text(times_.step_seconds) << ": " << why << '\n';
  }

  void name_too_fast(const std::vector<Row>& nodes) {
    size_t count = 0;
    std::string names;
    for (const Row& row : nodes) {
      if (!row.is_too_fast) continue;
      if (++count <= 3) names += (count > 1 ? ", " : "") + row.name;
    }
    if (count == 0) return;
    console_.product() << "  " << count_text(count, "node")
                       << " faster than the profile's device can be: " << printable_line(names)
                       << (count > 3 ? ", ..." : "") << '\n';
  }

  nlohmann::ordered_json json_of(const std::vector<Row>& rows) const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      nlohmann::ordered_json each = {
          {"node", row.name.substr(1)}, {"seconds", row.device}, {"launch_seconds", row.launch}};
      if (row.is_predicted) each["predicted_seconds"] = row.predicted;
      if (row.is_too_fast) each["above_roofline"] = true;
      list.push_back(std::move(each));
    }
    return list;
  }

  Console& console_;
  const StepTimes& times_;
  std::unordered_map<uint64_t, Place> places_;
  std::map<const Graph*, CostTable> costs_;
  Unit unit_{};
};

}  // namespace

void report_step_times(Console& console, const StepTimes& times) { TimeTables(console, times).report(); }

Status write_step_times(const std::string& path, const StepTimes& times) {
  const std::unordered_map<uint64_t, Place> places = places_by_uid(times.module);
  struct Sum {
    double seconds = 0;
    size_t calls = 0;
  };
  std::unordered_map<uint64_t, Sum> sums;
  for (uint32_t i = 0; i < times.plan.num_steps; ++i) {
    if (times.steps[i].device_seconds == 0 || times.plan.steps[i].node == FX_NONE) continue;
    Sum& sum = sums[times.plan.nodes[times.plan.steps[i].node].uid];
    sum.seconds += times.steps[i].device_seconds;
    ++sum.calls;
  }
  Measurement measurement;
  measurement.device = times.device;
  measurement.software = {{"fxopt", std::string(kVersion)}};
  measurement.method = times.method;
  measurement.runs = times.runs;
  for (const GraphId id : times.module.graphs()) {
    const Graph& graph = times.module.graph(id);
    std::vector<MeasuredCall> calls;
    for (const NodeId node : graph.nodes()) {
      const auto sum = sums.find(graph[node].uid);
      if (sum == sums.end() || places.at(sum->first).graph != &graph) continue;
      calls.push_back({sum->first, graph.op(node).name, call_types(graph, node, times.symbols),
                       sum->second.seconds / static_cast<double>(sum->second.calls)});
    }
    if (!calls.empty()) measurement.graphs.emplace_back(std::string(times.module.text(graph.name())), std::move(calls));
  }
  return write_file(path, print_measurement(measurement));
}

}  // namespace fxopt
