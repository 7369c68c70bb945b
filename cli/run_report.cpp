#include "cli/run_report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/print/table.h"
#include "cli/run_memory.h"
#include "core/bytes.h"
#include "core/text.h"
#include "ir/graph/types.h"
#include "runtime/plan/live.h"
#include "runtime/plan/plan.h"
#include "runtime/run/compare.h"
#include "runtime/run/outputs.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

class OutcomeReport {
 public:
  OutcomeReport(Console& console, const RunFacts& facts) : console_(console), facts_(facts), plan_(facts.plan) {}

  Status report() {
    look_at_outputs();
    if (const Status status = facts_.program->read_status(); !status.ok()) return status;
    console_.product() << "ran " << printable_line(std::string(text_at(plan_, plan_.name))) << " on "
                       << facts_.target->name() << ": exact, " << facts_.target->how() << loss_ << "; "
                       << (infinite_ == 0
                               ? "all " + count_text(outputs_, "output") + " finite"
                               : count_text(infinite_, "output") + " of " + std::to_string(outputs_) + " not finite")
                       << '\n';
    report_devices();
    report_inputs();
    report_time();
    report_memory();
    nlohmann::ordered_json& result = console_.result();
    facts_.target->add_to(result);
    result["made_up_inputs"] = facts_.inputs.bound().num_made_up();
    result["seed"] = facts_.flags.seed;
    return ok_status();
  }

  void report_interrupted(uint32_t whole_runs, double seconds) {
    console_.product() << "interrupted in run " << whole_runs + 1 << ", after " << measured_time_text(seconds)
                       << "; nothing was written\n";
    console_.result()["interrupted"] = true;
    console_.result()["seconds"] = facts_.seconds;
    report_memory();
  }

 private:
  std::ostream& line(const char* what) {
    char label[16];
    std::snprintf(label, sizeof label, "  %-11s", what);
    return console_.product() << label;
  }

  // Reads the loss, and counts the outputs that are not finite.
  void look_at_outputs() {
    const ScalarValues& values = facts_.inputs.values();
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const std::vector<std::string> names = output_names(plan_);
    for (uint64_t i = 0; i < plan_.num_outputs; ++i) {
      const std::optional<PlacedTensor> tensor = output_tensor(plan_, values, i);
      if (!tensor.has_value()) continue;
      ++outputs_;
      const void* storage = facts_.program->bytes_of(tensor->storage);
      const bool is_finite = count_not_finite(*tensor, storage) == 0;
      infinite_ += is_finite ? 0 : 1;
      list.push_back({{"name", names[i]},
                      {"dtype", name_of(tensor->shape.dtype)},
                      {"sizes", tensor->shape.sizes},
                      {"finite", is_finite}});
      const bool is_loss = plan_.outputs[i].role == static_cast<uint32_t>(OutputRole::kLoss);
      if (!is_loss || tensor->shape.elements() != 1) continue;
      const double value = as_doubles(tensor->shape.dtype, copy_out(*tensor, storage)).front();
      loss_ = "; loss " + number_text(value);
      console_.result()["loss"] = value;
    }
    console_.result()["outputs"] = std::move(list);
  }

  void report_devices() {
    for (const uint32_t device : devices_of(plan_)) {
      const std::string_view name = text_at(plan_, device);
      if (device == FX_NONE || name.starts_with(facts_.target->is_device() ? "cuda" : "cpu")) continue;
      line("device") << printable_line(std::string(name)) << " in the file, run on " << facts_.target->name() << '\n';
    }
  }

  void report_inputs() {
    const size_t made_up = facts_.inputs.bound().num_made_up();
    for (const std::string& used : facts_.inputs.used()) line("inputs") << printable_line(used) << '\n';
    if (made_up > 0) {
      line("inputs") << made_up << " made up: --fill " << facts_.flags.fill
                     << (facts_.flags.fill == "random" ? ", seed " + std::to_string(facts_.flags.seed) : "") << '\n';
    }
    if (plan_.num_draws > 0) {
      line("draws") << plan_.num_draws
                    << (facts_.inputs.has_draws() ? " from " + facts_.flags.draws
                                                  : " by slot, seed " + std::to_string(facts_.flags.seed))
                    << '\n';
    }
  }

  void report_time() {
    const std::vector<double>& seconds = facts_.seconds;
    std::ostream& out = line("time");
    out << (seconds.size() > 1 ? "median " : "") << measured_time_text(median_of(seconds));
    if (seconds.size() > 1) {
      const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
      out << ", " << measured_time_text(*least) << " to " << measured_time_text(*most) << " in "
          << count_text(seconds.size(), "run") << ", equal bits";
    }
    if (!facts_.launch_seconds.empty()) {
      out << ", by the GPU's events; CPU time of launching: " << measured_time_text(median_of(facts_.launch_seconds));
    }
    out << '\n';
    console_.result()["seconds"] = seconds;
    if (!facts_.launch_seconds.empty()) console_.result()["launch_seconds"] = facts_.launch_seconds;
  }

  // One line each for the predicted memory, the plan's memory, and the counted or measured memory.
  void report_memory() {
    const Program& program = *facts_.program;
    const std::vector<uint32_t> devices = devices_of(plan_);
    const PlanPeak peak = peak_of(plan_, facts_.inputs.values(), devices.empty() ? FX_NONE : devices.front());
    const int64_t copied = facts_.inputs.bound().copied_bytes();
    const bool is_counted = program.counted_peak() > 0;
    line("memory") << "predicted peak " << bytes_text(peak.bytes) << '\n';
    std::ostream& taken = line("");
    if (is_counted) {
      taken << "counted " << bytes_text(program.counted_peak()) << ", with workspaces";
    } else {
      taken << "arena " << bytes_text(program.arena_bytes()) << ", with workspaces";
    }
    if (program.reserved_peak() > 0) taken << "; the allocator reserved " << bytes_text(program.reserved_peak());
    if (facts_.on_device != nullptr && !is_counted) taken << "; inputs " << bytes_text(facts_.on_device->given_bytes());
    if (facts_.on_device == nullptr) taken << "; inputs copied " << bytes_text(copied);
    taken << '\n';
    if (facts_.on_device != nullptr) {
      line("") << "free memory of the GPU fell by " << size_text(facts_.on_device->measured_bytes()) << '\n';
    } else {
      line("") << "the process's largest resident size " << size_text(facts_.resident_bytes) << '\n';
    }
    add_memory(peak.bytes, copied);
    compare_to_allocator();
  }

  // null if nothing was counted.
  void add_memory(int64_t predicted, int64_t copied) {
    const auto counted = [](int64_t bytes) {
      return bytes > 0 ? nlohmann::ordered_json(bytes) : nlohmann::ordered_json(nullptr);
    };
    const Program& program = *facts_.program;
    nlohmann::ordered_json& memory = console_.result()["memory"];
    memory = {{"predicted_peak_bytes", predicted},
              {"arena_bytes", facts_.flags.target.memory == "arena" ? nlohmann::ordered_json(program.arena_bytes())
                                                                    : nlohmann::ordered_json(nullptr)},
              {"counted_peak_bytes", counted(program.counted_peak())},
              {"reserved_peak_bytes", counted(program.reserved_peak())},
              {"copied_input_bytes", copied},
              {"largest_resident_bytes", counted(facts_.resident_bytes)}};
    if (facts_.on_device == nullptr) return;
    memory["given_bytes"] = facts_.on_device->given_bytes();
    memory["measured_bytes"] = facts_.on_device->measured_bytes();
  }

  // Compares the caching allocator on the device with the prediction of `mem`.
  void compare_to_allocator() {
    if (facts_.on_device == nullptr || facts_.target->allocator_events().empty()) return;
    const AllocatorConfig config = *parse_allocator_config(facts_.flags.target.alloc_conf);
    const std::vector<int64_t>& workspaces = facts_.program->workspaces();
    const std::optional<AllocatorComparison> found =
        compare_allocator(facts_.module, plan_, facts_.inputs.symbols(), workspaces, config,
                          facts_.target->allocator_events(), facts_.on_device->num_given());
    if (!found.has_value()) {
      line("allocator") << "not compared with mem: the step has several graphs or devices\n";
      return;
    }
    line("allocator") << "allocated " << bytes_text(facts_.on_device->allocated_peak()) << ", predicted "
                      << bytes_text(found->predicted_allocated) << '\n';
    line("") << "reserved " << bytes_text(facts_.on_device->reserved_peak()) << ", predicted "
             << bytes_text(found->predicted_reserved) << '\n';
    const bool has_workspaces =
        std::any_of(workspaces.begin(), workspaces.end(), [](int64_t bytes) { return bytes > 0; });
    line("") << (found->first_difference.empty()
                     ? "all " + count_text(found->events, "event") + " as mem predicts them" +
                           (has_workspaces ? ", given the kernels' workspaces" : "")
                     : "first difference, after " + count_text(found->events, "event") + ": " +
                           printable_line(found->first_difference))
             << '\n';
    nlohmann::ordered_json& memory = console_.result()["memory"];
    memory["allocated_peak_bytes"] = facts_.on_device->allocated_peak();
    memory["predicted_allocated_bytes"] = found->predicted_allocated;
    memory["predicted_reserved_bytes"] = found->predicted_reserved;
    memory["equal_allocator_events"] = found->events;
    memory["first_difference"] = found->first_difference;
  }

  Console& console_;
  const RunFacts& facts_;
  const FxPlan& plan_;
  size_t infinite_ = 0, outputs_ = 0;
  std::string loss_;
};

}  // namespace

Status report_run(Console& console, const RunFacts& facts) { return OutcomeReport(console, facts).report(); }

void report_interrupted_run(Console& console, const RunFacts& facts, uint32_t whole_runs, double seconds) {
  OutcomeReport(console, facts).report_interrupted(whole_runs, seconds);
}

double median_of(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

int64_t largest_resident_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with("VmHWM:")) return std::strtoll(text.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

std::string number_text(double number) { return formatted("%.9g", number); }

}  // namespace fxopt
