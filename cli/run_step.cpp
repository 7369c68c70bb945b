// fxopt run: executes a step.

#include "cli/run_step.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/device.h"
#include "cli/files.h"
#include "cli/print/table.h"
#include "cli/process.h"
#include "cli/run_compare.h"
#include "cli/run_inputs.h"
#include "cli/run_report.h"
#include "cli/run_times.h"
#include "cli/take.h"
#include "core/stopwatch.h"
#include "ir/io/safetensors.h"
#include "runtime/plan/plan.h"
#include "runtime/run/outputs.h"

namespace fxopt {
namespace {

class StepExecution {
 public:
  StepExecution(Console& console, const Module& module, const FxPlan& plan, const RunStepFlags& flags,
                const ScalarValues::SymbolOf& symbols, const std::function<Status(const SymbolValues&)>& check_guards)
      : console_(console),
        module_(module),
        plan_(plan),
        flags_(flags),
        check_guards_(check_guards),
        inputs_(module, plan, flags, symbols),
        facts_(module, plan, flags, inputs_) {}

  Status run() {
    for (Status (StepExecution::*stage)() :
         {&StepExecution::open_target, &StepExecution::open_inputs, &StepExecution::find_kept, &StepExecution::execute,
          &StepExecution::report, &StepExecution::write, &StepExecution::compare}) {
      if (const Status status = (this->*stage)(); !status.ok()) return status;
    }
    return ok_status();
  }

 private:
  Status open_target() {
    const AllocatorConfig allocator = *parse_allocator_config(flags_.target.alloc_conf);
    for (const std::string& setting : allocator.not_modelled) {
      console_.warning("not-modelled", {},
                       "the setting " + setting + " is not modelled: storages are allocated without it");
    }
    if (const Status status = take(target_, RunTarget::open(flags_.target)); !status.ok()) return status;
    facts_.target = target_.get();
    return ok_status();
  }

  // Opens every input file before anything runs.
  Status open_inputs() {
    if (!flags_.profile.empty()) {
      if (const Status status = take(profile_, load_device_profile(flags_.profile)); !status.ok()) return status;
    }
    if (!flags_.expect.empty()) {
      const Result<const SafetensorsFile*> file = inputs_.open(flags_.expect);
      if (!file.ok()) return file.error();
      expected_ = *file;
    }
    if (const Status status = inputs_.bind(); !status.ok()) return status;
    return check_guards_(inputs_.symbols());
  }

  // Finds the plan steps whose results are kept: nodes named by --save, and nodes with expected
  // values in --expect.
  Status find_kept() {
    std::map<std::string_view, uint32_t> step_of;
    for (uint32_t i = 0; i < plan_.num_steps; ++i) {
      if (plan_.steps[i].node != FX_NONE) step_of.emplace(text_at(plan_, plan_.nodes[plan_.steps[i].node].name), i);
    }
    for (const std::string& given : flags_.save) {
      const std::string name = bare_name(given, '%');
      const auto found = step_of.find(name);
      if (found == step_of.end()) {
        const bool is_node = std::any_of(plan_.nodes, plan_.nodes + plan_.num_nodes,
                                         [&](const FxNode& node) { return text_at(plan_, node.name) == name; });
        return Error{ErrorCode::kUnknownNode,
                     is_node ? "%" + name + " has no memory of its own" : "there is no node '" + name + "'",
                     is_node ? "name the node that it is a view of" : "`fxopt show` lists the nodes",
                     {}};
      }
      kept_steps_.insert(found->second);
    }
    if (expected_ == nullptr) return ok_status();
    for (const SafetensorsTensor& tensor : expected_->content.tensors()) {
      const auto found = step_of.find(std::string_view(tensor.name).substr(0, tensor.name.find('.')));
      if (found != step_of.end()) kept_steps_.insert(found->second);
    }
    return ok_status();
  }

  // -- the run

  ExecuteOptions execute_options(const std::vector<void*>& given) const {
    ExecuteOptions options;
    options.seed = flags_.seed;
    options.given = given;
    options.drawn = [this](uint32_t step) { return inputs_.drawn(step); };
    options.is_interrupted = [] { return Interrupts::signal() != 0; };
    return options;
  }

  // True if the result of the step is wanted and no earlier run has stored it.
  bool wants_result(uint32_t step) const { return kept_steps_.count(step) > 0 && kept_.count(step) == 0; }
  bool wants_mask(uint32_t step) const {
    return !flags_.save_draws.empty() && plan_.steps[step].draw != FX_NONE && plan_.steps[step].num_results > 1 &&
           masks_.count(step) == 0;
  }

  Status execute() {
    ExecuteOptions options = execute_options(inputs_.bound().given());
    options.is_watched = [&](uint32_t step) { return wants_result(step) || wants_mask(step); };
    options.after = [&](uint32_t step) {
      if (wants_mask(step)) {
        NamedTensor mask = copy_results(*program_, inputs_.values(), step).at(1);
        mask.name = text_at(plan_, plan_.nodes[plan_.steps[step].node].name);
        masks_[step] = std::move(mask);
      }
      if (wants_result(step)) kept_[step] = copy_results(*program_, inputs_.values(), step);
    };
    const Status prepared = take(program_, target_->prepare(plan_, inputs_.values(), options));
    if (!prepared.ok()) return prepared;
    facts_.program = program_.get();
    facts_.on_device = dynamic_cast<const DeviceProgram*>(program_.get());
    for (uint32_t i = 0; i < flags_.repeat + warmup(); ++i) {
      if (const Status status = run_once(i); !status.ok()) return status;
    }
    if (const Status status = target_->check_subnormals(); !status.ok()) return status;
    return wants_step_times() ? time_steps() : ok_status();
  }

  Status run_once(uint32_t i) {
    if (i > 0) {
      if (const Status status = restore(); !status.ok()) return status;
    }
    Stopwatch watch;
    if (const Status status = program_->run(); !status.ok()) {
      if (Interrupts::signal() != 0) {
        facts_.resident_bytes = largest_resident_bytes();
        report_interrupted_run(console_, facts_, i, watch.lap());
      }
      return status;
    }
    if (i >= warmup()) add_time(watch.lap());
    if (i == 0) facts_.resident_bytes = largest_resident_bytes();
    if (!needs_outputs()) return ok_status();
    std::vector<NamedTensor> outputs = copy_outputs(*program_, inputs_.values());
    if (i > 0 && !same_bits(outputs)) return other_bits();
    outputs_ = std::move(outputs);
    return ok_status();
  }

  Status restore() {
    inputs_.bound().restore();
    return program_->upload();
  }

  // Records the time of a run. On a device, events of the device give the time, and the CPU's
  // launch time is recorded separately.
  void add_time(double host_seconds) {
    facts_.seconds.push_back(facts_.on_device == nullptr ? host_seconds : facts_.on_device->device_seconds());
    if (facts_.on_device != nullptr) facts_.launch_seconds.push_back(facts_.on_device->launch_seconds());
  }

  // Outputs are copied only if the copies are used, because copies double the memory of outputs.
  bool needs_outputs() const { return !flags_.output.empty() || expected_ != nullptr || flags_.repeat + warmup() > 1; }

  bool same_bits(const std::vector<NamedTensor>& outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].bytes != outputs_[i].bytes) return false;
    }
    return true;
  }

  Error other_bits() {
    const std::optional<uint32_t> step = program_->first_difference([&] { inputs_.bound().restore(); });
    const std::string where = step.has_value()
                                  ? "; the first node that differs is %" +
                                        std::string(text_at(plan_, plan_.nodes[plan_.steps[*step].node].name))
                                  : std::string("; two more runs gave equal bits");
    return {ErrorCode::kInternal,
            "two runs of the step gave different bits" + where,
            "this is a mistake in fxopt; please report it with this file",
            {}};
  }

  // The number of runs that are not timed. If nodes are timed, the default is 1, because the first
  // run has cold caches.
  uint32_t warmup() const { return static_cast<uint32_t>(flags_.warmup.value_or(wants_step_times() ? 1 : 0)); }

  bool wants_step_times() const { return flags_.per_node || !flags_.write_measurement.empty(); }

  // Runs each step of the plan separately, --repeat times, and stores the median times.
  Status time_steps() {
    std::vector<std::vector<FxStepTime>> runs;
    for (uint32_t i = 0; i < flags_.repeat; ++i) {
      if (const Status status = restore(); !status.ok()) return status;
      if (const Status status = take(runs.emplace_back(), program_->time_steps()); !status.ok()) return status;
    }
    times_.resize(plan_.num_steps);
    for (uint32_t step = 0; step < plan_.num_steps; ++step) {
      std::vector<double> device, launch;
      for (const std::vector<FxStepTime>& run : runs) {
        device.push_back(run[step].device_seconds);
        launch.push_back(run[step].launch_seconds);
      }
      times_[step] = {median_of(device), median_of(launch)};
    }
    return ok_status();
  }

  // -- the outcome

  StepTimes step_times() const {
    StepTimes times{module_, plan_};
    times.steps = times_;
    times.step_seconds = median_of(facts_.seconds);
    times.runs = flags_.repeat;
    times.is_launched = target_->is_device();
    times.device = target_->is_device() ? target_->device()->info().name : "cpu";
    times.method = target_->is_device() ? "cuda events" : "steady clock";
    times.profile = profile_.get();
    times.symbols = inputs_.symbols();
    if (flags_.top.has_value()) times.shown = *flags_.top;
    return times;
  }

  Status report() {
    if (const Status status = report_run(console_, facts_); !status.ok()) return status;
    if (flags_.per_node) report_step_times(console_, step_times());
    return ok_status();
  }

  Status write() {
    if (!flags_.write_measurement.empty()) {
      if (const Status status = write_step_times(flags_.write_measurement, step_times()); !status.ok()) return status;
    }
    if (!flags_.output.empty()) {
      if (const Status status = write_tensors(flags_.output, values()); !status.ok()) return status;
    }
    if (flags_.save_draws.empty()) return ok_status();
    std::vector<const NamedTensor*> masks;
    for (const auto& [step, mask] : masks_) masks.push_back(&mask);
    return write_tensors(flags_.save_draws, masks);
  }

  static Status write_tensors(const std::string& path, const std::vector<const NamedTensor*>& values) {
    std::vector<SafetensorsTensor> tensors;
    for (const NamedTensor* value : values) tensors.push_back({value->name, value->dtype, value->sizes, value->bytes});
    return save_safetensors(path, tensors, {{"producer", "fxopt run"}});
  }

  // Returns the kept results of nodes, and the outputs.
  std::vector<const NamedTensor*> values() const {
    std::vector<const NamedTensor*> found;
    for (const auto& [step, kept] : kept_) {
      for (const NamedTensor& value : kept) found.push_back(&value);
    }
    for (const NamedTensor& value : outputs_) found.push_back(&value);
    return found;
  }

  Status compare() {
    if (expected_ == nullptr) return ok_status();
    RunComparison comparison(console_, facts_, *target_, *program_,
                             [this](const std::vector<void*>& given) { return execute_options(given); });
    return comparison.compare(values(), *expected_);
  }

  Console& console_;
  const Module& module_;
  const FxPlan& plan_;
  const RunStepFlags& flags_;
  const std::function<Status(const SymbolValues&)>& check_guards_;
  Interrupts interrupts_;
  RunInputs inputs_;
  std::unique_ptr<RunTarget> target_;
  std::unique_ptr<DeviceProfile> profile_;
  const SafetensorsFile* expected_ = nullptr;
  std::unique_ptr<Program> program_;
  RunFacts facts_;
  std::vector<FxStepTime> times_;  // by plan step; empty if nodes are not timed
  std::vector<NamedTensor> outputs_;
  std::set<uint32_t> kept_steps_;
  std::map<uint32_t, std::vector<NamedTensor>> kept_;  // by step
  std::map<uint32_t, NamedTensor> masks_;              // masks for --save-draws, by step
};

}  // namespace

Status check_step_flags(const RunStepFlags& flags) {
  if (!flags.fill.empty() && !fill_by_name(flags.fill).has_value()) {
    return bad_value_error("--fill takes random, ramp, zeros or ones, not '" + flags.fill + "'");
  }
  if (const Result<Tolerance> tolerance = parse_tolerance(flags.tolerance); !tolerance.ok()) return tolerance.error();
  const auto needs = [](const char* flag, const char* other) {
    return Status(bad_value_error(std::string(flag) + " needs " + other));
  };
  if (flags.repeat == 0) return bad_value_error("--repeat takes 1 or more, not 0");
  if (!flags.save.empty() && flags.output.empty())
    return needs("--save", "--output, because its results go into that file");
  if (!flags.profile.empty() && !flags.per_node)
    return needs("--profile", "--per-node, because it adds a column to that table");
  if (flags.top.has_value() && !flags.per_node)
    return needs("--top", "--per-node, because it limits the rows of those tables");
  return check_target_flags(flags.target);
}

void run_step(Console& console, const Module& module, const FxPlan& plan, const RunStepFlags& flags,
              const std::string& input, const ScalarValues::SymbolOf& symbols,
              const std::function<Status(const SymbolValues&)>& check_guards) {
  const Status status = StepExecution(console, module, plan, flags, symbols, check_guards).run();
  if (status.ok()) return;
  Error error = status.error();
  if (error.where.file.empty()) error.where.file = input;
  console.error(error);
}

}  // namespace fxopt
