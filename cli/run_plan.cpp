// Reports of `fxopt run` about a plan that has not run yet.

#include "cli/run_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/files.h"
#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "ir/memory/memory.h"
#include "runtime/plan/live.h"
#include "runtime/plan/place.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/print.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

// Returns the module and the source line of a node, such as "layers.1.moe, moe.py:512".
std::string place_text(const FxPlan& plan, uint32_t node) {
  if (node >= plan.num_nodes) return {};
  const FxNode& row = plan.nodes[node];
  std::string text(text_at(plan, row.module));
  if (row.file == FX_NONE) return text;
  const std::string file(text_at(plan, row.file));
  if (!text.empty()) text += ", ";
  return text + file.substr(file.rfind('/') + 1) + ":" + std::to_string(row.line);
}

// Returns the type of the first tensor operand of the step: "bf16[512, 256]". If the step has no
// tensor operand, returns the type of the first tensor result.
std::string operand_text(const FxPlan& plan, const FxStep& step) {
  const auto find = [&](uint32_t first, uint32_t count) -> std::string {
    for (uint32_t i = 0; i < count; ++i) {
      const FxWord word = plan.words[first + i];
      if (kind_of(word) != FX_WORD_TENSOR) continue;
      const std::string text = tensor_text(plan, index_of(word));
      return text.substr(0, text.find(" on "));
    }
    return {};
  };
  const std::string given = find(step.args, step.num_args);
  return given.empty() ? find(step.results, step.num_results) : given;
}

nlohmann::ordered_json coverage_json(const std::vector<OpCoverage>& coverage) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OpCoverage& op : coverage) {
    const FxStep& step = op.plan->steps[op.step];
    rows.push_back({{"operator", op.name},
                    {"calls", op.calls},
                    {"provider", provider_name(op.provider)},
                    {"first", text_at(*op.plan, op.plan->nodes[step.node].name)},
                    {"place", place_text(*op.plan, step.node)},
                    {"operand", operand_text(*op.plan, step)}});
    if (op.row != nullptr) rows.back()["family"] = family_name(op.row->family);
    if (op.row == nullptr) rows.back()["remedy"] = remedy_name(op.remedy);
  }
  return rows;
}

std::vector<OpCoverage> provided_by(const std::vector<OpCoverage>& coverage, KernelProvider provider) {
  std::vector<OpCoverage> found;
  std::copy_if(coverage.begin(), coverage.end(), std::back_inserter(found),
               [&](const OpCoverage& op) { return op.provider == provider; });
  return found;
}

size_t sum_of_calls(const std::vector<OpCoverage>& coverage) {
  size_t calls = 0;
  for (const OpCoverage& op : coverage) calls += op.calls;
  return calls;
}

// Returns text such as "19 operators in 3237 calls".
std::string coverage_text(const std::vector<OpCoverage>& coverage) {
  return count_text(coverage.size(), "operator") + " in " + count_text(sum_of_calls(coverage), "call");
}

void fail(Console& console, const std::string& input, Error error) {
  if (error.where.file.empty()) error.where.file = input;
  console.error(error);
}

class PlanReport {
 public:
  PlanReport(Console& console, const PlanReportOptions& options) : console_(console), options_(options) {}

  void report(const FxPlan& plan) {
    nlohmann::ordered_json& result = console_.result();
    const std::vector<OpCoverage> coverage = cover(plan);
    result["steps"] = plan.num_steps;
    result["storages"] = plan.num_storages;
    result["tensors"] = plan.num_tensors;
    result["scalars"] = plan.num_scalars;
    result["draws"] = plan.num_draws;
    result["output_names"] = output_names(plan);
    result["operators"] = coverage_json(coverage);
    print_summary(plan, coverage);
    report_devices(plan);
    report_rows(plan);
    if (options_.prints_plan) console_.product() << print_plan(plan);
    for (const std::string& text : placements_) console_.product() << text;
    report_missing(console_, plan, options_.input);
  }

 private:
  void print_summary(const FxPlan& plan, const std::vector<OpCoverage>& coverage) {
    const auto provided = [&](const char* what, KernelProvider provider) {
      const std::vector<OpCoverage> found = provided_by(coverage, provider);
      return found.empty() ? std::string() : what + coverage_text(found);
    };
    console_.product() << "plan of " << printable_line(std::string(text_at(plan, plan.name))) << ": "
                       << count_text(plan.num_steps, "step") << ", " << count_text(plan.num_storages, "storage")
                       << "; nothing was run\n"
                       << "  kernels    " << coverage_text(coverage) << ": fxopt has kernels for "
                       << coverage_text(provided_by(coverage, KernelProvider::kOwn))
                       << provided("; only PyTorch has kernels for ", KernelProvider::kPyTorch)
                       << provided("; neither has kernels for ", KernelProvider::kNone) << '\n';
    const auto transfers = std::count_if(plan.steps, plan.steps + plan.num_steps,
                                         [](const FxStep& step) { return (step.flags & FX_STEP_TRANSFERS) != 0; });
    if (transfers > 0) {
      console_.product() << "  transfers  " << count_text(static_cast<size_t>(transfers), "step")
                         << " with storages on several devices\n";
    }
    console_.result()["transfers"] = transfers;
    if (plan.num_draws > 0) console_.product() << "  draws      " << plan.num_draws << '\n';
  }

  void report_devices(const FxPlan& plan) {
    nlohmann::ordered_json& list = console_.result()["devices"] = nlohmann::ordered_json::array();
    for (const uint32_t device : devices_of(plan)) {
      PlaceOptions options;
      options.device = device;
      options.streams = options_.streams;
      options.symbols = options_.symbols;
      Stopwatch watch;
      const Result<PlanPlacement> placed = place(plan, options);
      if (!placed.ok()) return fail(console_, options_.input, placed.error());
      const std::string name = device == FX_NONE ? "no recorded device" : std::string(text_at(plan, device));
      console_.stage("placed storages of " + name, watch.lap());
      if (report_faults(console_, check_placement(plan, placed->view()), options_.input)) return;
      console_.stage("checked the placement", watch.lap());
      print_device(plan, *placed, name, list);
      if (options_.prints_plan) placements_.push_back(print_placement(plan, placed->view()));
    }
  }

  void print_device(const FxPlan& plan, const PlanPlacement& placed, const std::string& name,
                    nlohmann::ordered_json& list) {
    int64_t given = 0;
    size_t late = 0, planned = 0;
    const ScalarValues values = ScalarValues::by_symbols(plan, options_.symbols);
    const PlanPeak peak = peak_of(plan, values, placed.device);
    for (uint64_t i = 0; i < plan.num_storages; ++i) {
      const uint32_t kind = placed.blocks[i].kind;
      if (kind == FX_BLOCK_GIVEN) given += values.integer(plan.storages[i].bytes).value_or(0);
      late += kind == FX_BLOCK_LATE ? 1 : 0;
      planned += kind == FX_BLOCK_ARENA ? 1 : 0;
    }
    console_.product() << "  memory     " << printable_line(name) << ": arena " << bytes_text(placed.arena_bytes)
                       << " for " << count_text(planned, "storage");
    if (placed.arena_bytes > placed.lower_bound) console_.product() << ", at least " << bytes_text(placed.lower_bound);
    console_.product() << "; inputs and constants " << bytes_text(given);
    if (late > 0) console_.product() << "; " << count_text(late, "storage") << " of a size known only at run time";
    console_.product() << '\n';
    nlohmann::ordered_json roles = nlohmann::ordered_json::object();
    std::string text;
    for (size_t role = 0; role < peak.by_role.size(); ++role) {
      if (peak.by_role[role] == 0) continue;
      const std::string word(memory_class_name(static_cast<MemoryClass>(role)));
      roles[word] = peak.by_role[role];
      text += (text.empty() ? "" : ", ") + word + " " + size_text(peak.by_role[role]);
    }
    if (peak.bytes > 0) {
      console_.product() << "             at most " << bytes_text(peak.bytes) << " at once, in step " << peak.step
                         << ": " << text << '\n';
    }
    list.push_back({{"device", name},
                    {"peak_bytes", peak.bytes},
                    {"peak_step", peak.step},
                    {"peak_by_role", roles},
                    {"arena_bytes", placed.arena_bytes},
                    {"lower_bound", placed.lower_bound},
                    {"given_bytes", given},
                    {"planned_storages", planned},
                    {"late_storages", late},
                    {"streams", placed.stream_count},
                    {"events", placed.events.size()}});
  }

  void report_rows(const FxPlan& plan) {
    const RowCheck check = check_rows(plan, options_.symbols);
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const RowDifference& difference : check.differences) {
      const FxStep& step = difference.plan->steps[difference.step];
      rows.push_back({{"operator", op_name(*difference.plan, step)},
                      {"node", text_at(*difference.plan, difference.plan->nodes[step.node].name)},
                      {"result", difference.result},
                      {"rule", difference.rule.has_value() ? shape_text(*difference.rule) : "none"},
                      {"recorded", shape_text(*difference.recorded)}});
    }
    console_.result()["results_checked"] = check.checked;
    nlohmann::ordered_json& unknown = console_.result()["results_unknown"] = nlohmann::ordered_json::object();
    std::string names;
    for (const auto& [name, count] : check.unknown) {
      unknown[std::string(name)] = count;
      names += (names.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(count);
    }
    if (check.checked > 0 || !names.empty()) {
      console_.product() << "  results    " << check.checked - check.differences.size() << " of " << check.checked
                         << " agree with the shape rules";
      if (!names.empty()) console_.product() << "; " << check.num_unknown() << " not compared: " << names;
      console_.product() << '\n';
    }
    for (const nlohmann::ordered_json& row : rows) {
      console_.product() << "    " << row["operator"].get<std::string>() << " %" << row["node"].get<std::string>()
                         << ": " << row["recorded"].get<std::string>() << " recorded, "
                         << row["rule"].get<std::string>() << " by the rule; the recorded shape is used\n";
    }
    console_.result()["results_differing"] = std::move(rows);
  }

  Console& console_;
  const PlanReportOptions& options_;
  std::vector<std::string> placements_;
};

// Prints how to apply each remedy that the operators need.
void print_remedies(Console& console, const std::vector<OpCoverage>& missing) {
  for (size_t i = 0; i < kNumRemedies; ++i) {
    const auto remedy = static_cast<Remedy>(i);
    const auto has_it = [&](const OpCoverage& op) { return op.remedy == remedy; };
    if (std::none_of(missing.begin(), missing.end(), has_it)) continue;
    console.product() << "  " << remedy_name(remedy) << ": " << remedy_hint(remedy) << '\n';
  }
}

}  // namespace

// The checker is independent of the planner: a fault is a bug in fxopt.
bool report_faults(Console& console, const std::vector<PlanFault>& faults, const std::string& input) {
  for (const PlanFault& fault : faults) {
    fail(console, input,
         {ErrorCode::kInternal,
          "the plan is wrong: " + std::string(plan_fault_name(fault.kind)) + ": " + fault.message,
          "this is a mistake in fxopt; please report it with this file",
          {}});
  }
  return !faults.empty();
}

// Reports all missing kernels at once, so that adding one kernel does not just reveal the next gap.
bool report_missing(Console& console, const FxPlan& plan, const std::string& input) {
  const std::vector<OpCoverage> coverage = cover(plan);
  std::vector<OpCoverage> missing;
  std::copy_if(coverage.begin(), coverage.end(), std::back_inserter(missing),
               [](const OpCoverage& op) { return op.row == nullptr; });
  if (missing.empty()) return false;
  Table table({Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
  table.add({"operator without a kernel", "calls", "first call", "operand", "PyTorch", "remedy"});
  for (const OpCoverage& op : missing) {
    const FxStep& step = op.plan->steps[op.step];
    const std::string place = place_text(*op.plan, step.node);
    table.add({std::string(op.name), std::to_string(op.calls),
               "%" + std::string(text_at(*op.plan, op.plan->nodes[step.node].name)) +
                   (place.empty() ? "" : " (" + place + ")"),
               operand_text(*op.plan, step), op.provider == KernelProvider::kPyTorch ? "yes" : "no",
               std::string(remedy_name(op.remedy))});
  }
  table.print(console.product());
  print_remedies(console, missing);
  Error error{ErrorCode::kUnsupportedOp,
              std::to_string(missing.size()) + " of " + count_text(coverage.size(), "operator") +
                  (missing.size() == 1 ? " has" : " have") + " no kernel in fxopt (" +
                  std::to_string(sum_of_calls(missing)) + " of " + count_text(sum_of_calls(coverage), "call") + ")",
              "the plan, its memory and its schedule are still valid",
              {}};
  fail(console, input, error);
  return true;
}

void report_plan(Console& console, const FxPlan& plan, const PlanReportOptions& options) {
  PlanReport(console, options).report(plan);
}

}  // namespace fxopt
