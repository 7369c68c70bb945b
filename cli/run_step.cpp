// fxopt run: executes a step.

#include "cli/run_step.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/device.h"
#include "cli/print/json.h"
#include "cli/print/table.h"
#include "cli/process.h"
#include "cli/run_memory.h"
#include "cli/run_times.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "ir/graph/module.h"
#include "ir/graph/types.h"
#include "ir/io/npy.h"
#include "ir/io/safetensors.h"
#include "runtime/plan/live.h"
#include "runtime/plan/plan.h"
#include "runtime/run/compare.h"
#include "runtime/run/far_step.h"
#include "runtime/run/inputs.h"
#include "runtime/run/program.h"
#include "runtime/run/tensors.h"
#include "runtime/run/widen.h"

namespace fxopt {
namespace {

constexpr int64_t kMostKept = int64_t{2} << 30;  // of nodes that are compared with float64

// A tensor that the step gave, row-major.
struct Value {
  std::string name;
  DType dtype = DType::kUnspecified;
  std::vector<int64_t> sizes;
  std::vector<std::byte> bytes;
  uint32_t output = FX_NONE;  // of the plan
  uint32_t step = FX_NONE;    // that gave it, where it is no output
};

std::string number_text(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string element_text(const std::vector<int64_t>& sizes, size_t element) {
  std::string text;
  for (size_t d = sizes.size(); d-- > 0;) {
    const auto size = static_cast<size_t>(sizes[d]);
    text = std::to_string(element % size) + (text.empty() ? "" : ", ") + text;
    element /= size;
  }
  return "[" + text + "]";
}

// The process's largest resident size so far, as the system counts it for its address space (getrusage() has the largest of what the
// process was before exec, too). 0 where it does not say.
int64_t largest_resident_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

class StepRun {
 public:
  StepRun(Console& console, const Module& module, const FxPlan& plan, const RunStepFlags& flags,
          const std::string& input, const ScalarValues::SymbolOf& symbols,
          const std::function<Status(const SymbolValues&)>& check_guards)
      : console_(console),
        module_(module),
        plan_(plan),
        flags_(flags),
        input_(input),
        symbols_(symbols),
        check_guards_(check_guards) {}

  void run() {
    tolerance_ = *parse_tolerance(flags_.tolerance);
    if (!open_target() || !open_files() || !bind_inputs() || !execute()) return;
    if (!report()) return;
    if (wants_step_times() && !report_step_times()) return;
    if (!flags_.output.empty() && !write_output()) return;
    if (!flags_.save_draws.empty() && !write_draws()) return;
    if (!flags_.expect.empty()) compare_outputs();
  }

 private:
  bool fail(Error error) {
    if (error.where.file.empty()) error.where.file = input_;
    console_.error(error);
    return false;
  }

  bool open_target() {
    const AllocatorConfig allocator = *parse_allocator_config(flags_.target.alloc_conf);
    for (const std::string& setting : allocator.not_modelled) {
      console_.warning("not-modelled", {},
                       "the setting " + setting + " is not followed: storages are taken without it");
    }
    Result<std::unique_ptr<RunTarget>> target = RunTarget::open(flags_.target);
    if (!target.ok()) return fail(target.error());
    target_ = *std::move(target);
    return true;
  }

  // -- inputs

  bool open_files() {
    std::vector<std::string> paths = flags_.inputs;
    if (!flags_.state.empty()) paths.push_back(flags_.state);
    for (const std::string& path : paths) {
      const SafetensorsFile* file = open(path);
      if (file == nullptr) return false;
      // A file may have other tensors too: outputs to compare with, parameters that this step does not use.
      for (const SafetensorsTensor& tensor : file->content.tensors()) {
        if (!is_input(tensor.name)) continue;
        options_.given[tensor.name] = {&tensor, std::nullopt, path};
      }
    }
    return std::all_of(flags_.input.begin(), flags_.input.end(),
                       [&](const std::string& text) { return add_input(text); });
  }

  const SafetensorsFile* open(const std::string& path) {
    if (const auto known = files_.find(path); known != files_.end()) return &known->second;
    Result<SafetensorsFile> file = load_safetensors(path);
    if (file.ok()) return &files_.emplace(path, *std::move(file)).first->second;
    console_.error(file.error());
    return nullptr;
  }

  bool is_input(std::string_view name) const {
    for (uint64_t i = 0; i < plan_.num_inputs; ++i) {
      const std::array<std::string_view, 3> names = names_of(plan_, i);
      if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    }
    return false;
  }

  // NAME=FILE.npy, NAME=FILE.safetensors:KEY or NAME=NUMBER.
  bool add_input(const std::string& text) {
    const size_t equals = text.find('=');
    const Error error{ErrorCode::kBadOptionValue,
                      "--input takes NAME=FILE.npy, NAME=FILE.safetensors:KEY or NAME=NUMBER, not '" + text + "'",
                      "",
                      {}};
    if (equals == std::string::npos) return fail(error);
    const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
    char* end = nullptr;
    const double real = std::strtod(value.c_str(), &end);
    if (!value.empty() && *end == '\0') {
      const bool is_whole = value.find_first_of(".eEnN") == std::string::npos;
      const ScalarValue number =
          is_whole ? ScalarValue::of(std::strtoll(value.c_str(), nullptr, 10)) : ScalarValue::of_real(real);
      options_.given[name] = {nullptr, number, "--input"};
      return true;
    }
    if (value.ends_with(".npy")) {
      Result<NpyFile> array = load_npy(value);
      if (!array.ok()) return fail(array.error());
      arrays_.push_back(std::make_unique<NpyFile>(*std::move(array)));
      options_.given[name] = {&arrays_.back()->tensor, std::nullopt, value};
      return true;
    }
    const size_t colon = value.rfind(':');
    if (colon == std::string::npos) return fail(error);
    const SafetensorsFile* file = open(value.substr(0, colon));
    if (file == nullptr) return false;
    const SafetensorsTensor* tensor = file->content.find(value.substr(colon + 1));
    if (tensor == nullptr) {
      return fail(
          {ErrorCode::kBadInput, value.substr(0, colon) + " has no tensor '" + value.substr(colon + 1) + "'", "", {}});
    }
    options_.given[name] = {tensor, std::nullopt, value.substr(0, colon)};
    return true;
  }

  bool bind_inputs() {
    const std::optional<Fill> fill = fill_by_name(flags_.fill);
    options_.fill = fill.value_or(Fill::kNone);
    options_.seed = flags_.seed;
    options_.symbols = symbols_;
    Result<std::unique_ptr<StepInputs>> inputs = StepInputs::bind(plan_, options_);
    if (!inputs.ok()) return fail(inputs.error());
    inputs_ = *std::move(inputs);
    const Status guards = check_guards_(symbols());
    return guards.ok() || fail(guards.error());
  }

  std::optional<int64_t> symbol_value(std::string_view name) const {
    for (uint32_t i = 0; i < plan_.num_scalars; ++i) {
      const FxScalar& scalar = plan_.scalars[i];
      if (scalar.name == FX_NONE || text_at(plan_, scalar.name) != name) continue;
      return inputs_->values().integer(make_word(FX_WORD_SCALAR, i));
    }
    return symbols_(name);
  }

  // Values of the module's symbols, from the inputs.
  SymbolValues symbols() const {
    SymbolValues found;
    for (const Symbol& symbol : module_.symbols) {
      if (const std::optional<int64_t> value = symbol_value(module_.text(symbol.name))) found[symbol.name] = *value;
    }
    return found;
  }

  // -- draws

  // The mask of a step that draws, in the file of --draws, by the node's name; its sizes are checked.
  bool find_draws() {
    if (flags_.draws.empty()) return true;
    const SafetensorsFile* file = open(flags_.draws);
    if (file == nullptr) return false;
    for (uint32_t i = 0; i < plan_.num_steps; ++i) {
      const FxStep& step = plan_.steps[i];
      if (step.draw == FX_NONE || step.num_results < 2) continue;
      const std::string name(text_at(plan_, plan_.nodes[step.node].name));
      const SafetensorsTensor* mask = file->content.find(name);
      const std::optional<PlacedTensor> wanted =
          placed_tensor(plan_, inputs_->values(), index_of(plan_.words[step.results + 1]));
      if (mask != nullptr && wanted.has_value() && mask->dtype == DType::kBool && mask->sizes == wanted->shape.sizes) {
        drawn_[i] = mask->bytes.data();
        continue;
      }
      return fail({ErrorCode::kBadInput,
                   flags_.draws + (mask == nullptr ? " has no mask" : " has another mask than bools of its sizes") +
                       " for '" + name + "'",
                   "--save-draws writes one for each node that draws",
                   {}});
    }
    return true;
  }

  bool write_draws() {
    std::vector<SafetensorsTensor> tensors;
    for (const auto& [step, mask] : masks_) tensors.push_back({mask.name, mask.dtype, mask.sizes, mask.bytes});
    return write(flags_.save_draws, tensors);
  }

  bool write(const std::string& path, const std::vector<SafetensorsTensor>& tensors) {
    const Status status = save_safetensors(path, tensors, {{"producer", "fxopt run"}});
    if (!status.ok()) console_.error(status.error());
    return status.ok();
  }

  // -- the run

  ExecuteOptions execute_options(const std::vector<void*>& given) const {
    ExecuteOptions options;
    options.seed = flags_.seed;
    options.given = given;
    options.drawn = [this](uint32_t step) -> const void* {
      const auto found = drawn_.find(step);
      return found == drawn_.end() ? nullptr : found->second;
    };
    options.is_interrupted = [] { return Interrupts::signal() != 0; };
    return options;
  }

  bool execute() {
    ExecuteOptions options = execute_options(inputs_->given());
    if (!find_kept()) return false;
    if (!find_draws()) return false;
    options.after = [&](uint32_t step) {
      if (!flags_.save_draws.empty() && plan_.steps[step].draw != FX_NONE && plan_.steps[step].num_results > 1 &&
          masks_.count(step) == 0) {
        Value mask = results_of(*program_, step).at(1);
        mask.name = text_at(plan_, plan_.nodes[plan_.steps[step].node].name);
        masks_[step] = std::move(mask);
      }
      if (kept_steps_.count(step) > 0 && kept_.find(step) == kept_.end()) kept_[step] = results_of(*program_, step);
    };
    options.is_watched = [&](uint32_t step) {
      return (kept_steps_.count(step) > 0 && kept_.find(step) == kept_.end()) ||
             (!flags_.save_draws.empty() && plan_.steps[step].draw != FX_NONE && masks_.count(step) == 0);
    };
    Result<std::unique_ptr<Program>> program = target_->prepare(plan_, inputs_->values(), options);
    if (!program.ok()) return fail(program.error());
    program_ = *std::move(program);
    on_device_ = dynamic_cast<DeviceProgram*>(program_.get());
    const uint32_t runs = flags_.repeat + flags_.warmup;
    for (uint32_t i = 0; i < runs; ++i) {
      if (i > 0 && !restore()) return false;
      Stopwatch watch;
      if (const Status status = program_->run(); !status.ok()) {
        if (Interrupts::signal() != 0) tell_interrupted(watch.lap(), i);
        return fail(status.error());
      }
      if (i >= flags_.warmup) add_time(watch.lap());
      if (i == 0) resident_ = largest_resident_bytes();
      if (!needs_outputs()) continue;
      std::vector<Value> outputs = collect_outputs(*program_, plan_);
      if (i > 0 && !same_bits(outputs)) {
        const std::optional<uint32_t> step = program_->first_difference([&] { inputs_->restore(); });
        const std::string where =
            step.has_value()
                ? "; the first node is %" + std::string(text_at(plan_, plan_.nodes[plan_.steps[*step].node].name))
                : std::string("; two more runs gave equal bits");
        return fail({ErrorCode::kInternal,
                     "two runs of the step gave other bits" + where,
                     "this is a mistake in fxopt; please report it with this file",
                     {}});
      }
      outputs_ = std::move(outputs);
    }
    if (const Status status = target_->check_subnormals(); !status.ok()) return fail(status.error());
    return !wants_step_times() || time_steps();
  }

  bool restore() {
    inputs_->restore();
    const Status status = program_->upload();
    return status.ok() || fail(status.error());
  }

  // A device's time is by its own events; what the CPU took to launch it is another column.
  void add_time(double host_seconds) {
    seconds_.push_back(on_device_ == nullptr ? host_seconds : on_device_->device_seconds());
    if (on_device_ != nullptr) launch_seconds_.push_back(on_device_->launch_seconds());
  }

  bool wants_step_times() const { return flags_.per_node || !flags_.write_measurement.empty(); }

  // Medians of as many runs as are timed, each step alone.
  bool time_steps() {
    std::vector<std::vector<FxStepTime>> runs;
    for (uint32_t i = 0; i < flags_.repeat; ++i) {
      if (!restore()) return false;
      Result<std::vector<FxStepTime>> times = program_->time_steps();
      if (!times.ok()) return fail(times.error());
      runs.push_back(*std::move(times));
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
    return true;
  }

  // False where it failed; the console has the error.
  bool report_step_times() {
    std::unique_ptr<DeviceProfile> profile;
    if (!flags_.profile.empty()) {
      Result<std::unique_ptr<DeviceProfile>> loaded = load_device_profile(flags_.profile);
      if (!loaded.ok()) return fail(loaded.error());
      profile = *std::move(loaded);
    }
    StepTimes times{module_, plan_};
    times.steps = times_;
    times.step_seconds = median_of(seconds_);
    times.runs = flags_.repeat;
    times.is_launched = target_->is_device();
    times.device = target_->is_device() ? target_->device()->info().name : "cpu";
    times.method = target_->is_device() ? "cuda events" : "steady clock";
    times.profile = profile.get();
    times.symbols = symbols();
    if (flags_.per_node) fxopt::report_step_times(console_, times);
    if (flags_.write_measurement.empty()) return true;
    const Status status = write_step_times(flags_.write_measurement, times);
    return status.ok() || fail(status.error());
  }

  // What is known where the run was interrupted.
  void tell_interrupted(double seconds, uint32_t whole_runs) {
    console_.product() << "interrupted in run " << whole_runs + 1 << ", after " << measured_time_text(seconds)
                       << "; nothing was written\n";
    console_.result()["interrupted"] = true;
    console_.result()["seconds"] = seconds_;
    resident_ = largest_resident_bytes();
    report_memory();
  }

  // Copies of outputs take as much memory again: only where somebody reads them.
  bool needs_outputs() const {
    return !flags_.output.empty() || !flags_.expect.empty() || flags_.repeat + flags_.warmup > 1;
  }

  bool same_bits(const std::vector<Value>& outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].bytes != outputs_[i].bytes) return false;
    }
    return true;
  }

  std::vector<Value> collect_outputs(const Program& program, const FxPlan& plan) const {
    const std::vector<std::string> names = output_names(plan);
    std::vector<Value> values;
    for (uint32_t i = 0; i < plan.num_outputs; ++i) {
      const std::optional<PlacedTensor> tensor = output_tensor(plan, i);
      if (!tensor.has_value()) continue;
      values.push_back({names[i], tensor->shape.dtype, tensor->shape.sizes,
                        copy_out(*tensor, program.bytes_of(tensor->storage)), i});
    }
    return values;
  }

  // Nothing for an output that is no tensor.
  std::optional<PlacedTensor> output_tensor(const FxPlan& plan, uint64_t output) const {
    const FxWord word = plan.outputs[output].value;
    if (kind_of(word) != FX_WORD_TENSOR) return std::nullopt;
    std::optional<PlacedTensor> tensor = placed_tensor(plan, inputs_->values(), index_of(word));
    return tensor.has_value() && tensor->storage != FX_NONE ? tensor : std::nullopt;
  }

  // The steps whose results are kept: those that --save names, and those that --expect has values of.
  bool find_kept() {
    std::map<std::string_view, uint32_t> step_of;
    for (uint32_t i = 0; i < plan_.num_steps; ++i) {
      if (plan_.steps[i].node != FX_NONE) step_of.emplace(text_at(plan_, plan_.nodes[plan_.steps[i].node].name), i);
    }
    for (const std::string& name : flags_.save) {
      const auto found = step_of.find(name);
      if (found == step_of.end()) {
        return fail({ErrorCode::kUnknownNode,
                     "no step of the plan is called '" + name + "'",
                     "views make no step: name the node that they are views of",
                     {}});
      }
      kept_steps_.insert(found->second);
    }
    if (flags_.expect.empty()) return true;
    const SafetensorsFile* file = open(flags_.expect);
    if (file == nullptr) return false;
    for (const SafetensorsTensor& tensor : file->content.tensors()) {
      const auto found = step_of.find(std::string_view(tensor.name).substr(0, tensor.name.find('.')));
      if (found != step_of.end()) kept_steps_.insert(found->second);
    }
    return true;
  }

  // What a step gave: named after its node, results of several as NODE.0, NODE.1, ...
  std::vector<Value> results_of(const Program& program, uint32_t step) const {
    const FxPlan& plan = program.plan();
    const FxStep& row = plan.steps[step];
    std::vector<Value> values;
    for_each_result(plan, inputs_->values(), step, [&](uint32_t i, const PlacedTensor& tensor) {
      std::string name(text_at(plan, plan.nodes[row.node].name));
      if (row.num_results > 1) name += "." + std::to_string(i);
      values.push_back({name, tensor.shape.dtype, tensor.shape.sizes,
                        copy_out(tensor, program.bytes_of(tensor.storage)), FX_NONE, step});
    });
    return values;
  }

  // -- reports

  // False where the outputs could not be read, which has been told.
  bool report() {
    nlohmann::ordered_json& result = console_.result();
    size_t infinite = 0, outputs = 0;
    std::string loss;
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const std::vector<std::string> names = output_names(plan_);
    for (uint64_t i = 0; i < plan_.num_outputs; ++i) {
      const std::optional<PlacedTensor> tensor = output_tensor(plan_, i);
      if (!tensor.has_value()) continue;
      ++outputs;
      const void* storage = program_->bytes_of(tensor->storage);
      const bool is_finite = count_not_finite(*tensor, storage) == 0;
      infinite += is_finite ? 0 : 1;
      list.push_back({{"name", names[i]},
                      {"dtype", name_of(tensor->shape.dtype)},
                      {"sizes", tensor->shape.sizes},
                      {"finite", is_finite}});
      const bool is_loss = plan_.outputs[i].role == static_cast<uint32_t>(OutputRole::kLoss);
      if (!is_loss || tensor->shape.elements() != 1) continue;
      const double value = as_doubles(tensor->shape.dtype, copy_out(*tensor, storage)).front();
      loss = "; loss " + number_text(value);
      result["loss"] = value;
    }
    result["outputs"] = std::move(list);
    if (const Status status = program_->read_status(); !status.ok()) return fail(status.error());
    console_.product() << "ran " << printable_line(std::string(text_at(plan_, plan_.name))) << " on " << target_->name()
                       << ": exact, " << target_->how() << loss << "; "
                       << (infinite == 0
                               ? "all " + count_text(outputs, "output") + " finite"
                               : count_text(infinite, "output") + " of " + std::to_string(outputs) + " not finite")
                       << '\n';
    report_devices();
    if (inputs_->num_made_up() > 0) {
      console_.product() << "  inputs     " << count_text(inputs_->num_made_up(), "input") << " made up: --fill "
                         << flags_.fill << ", seed " << flags_.seed << '\n';
    }
    if (plan_.num_draws > 0)
      console_.product() << "  draws      " << plan_.num_draws
                         << (drawn_.empty() ? " by slot, seed " + std::to_string(flags_.seed) : " from " + flags_.draws)
                         << '\n';
    report_time();
    report_memory();
    target_->add_to(result);
    result["made_up_inputs"] = inputs_->num_made_up();
    result["seed"] = flags_.seed;
    return true;
  }

  void report_devices() {
    for (const uint32_t device : devices_of(plan_)) {
      const std::string_view name = text_at(plan_, device);
      if (device == FX_NONE || name.starts_with(target_->is_device() ? "cuda" : "cpu")) continue;
      console_.product() << "  device     " << printable_line(std::string(name)) << " in the file, run on "
                         << target_->name() << '\n';
    }
  }

  void report_time() {
    const auto [least, most] = std::minmax_element(seconds_.begin(), seconds_.end());
    console_.product() << "  time       " << (seconds_.size() > 1 ? "median " : "")
                       << measured_time_text(median_of(seconds_));
    if (seconds_.size() > 1) {
      console_.product() << ", " << measured_time_text(*least) << " to " << measured_time_text(*most) << " in "
                         << count_text(seconds_.size(), "run") << ", equal bits";
    }
    if (!launch_seconds_.empty())
      console_.product() << ", by the GPU's events; launching took the CPU "
                         << measured_time_text(median_of(launch_seconds_));
    console_.product() << '\n';
    console_.result()["seconds"] = seconds_;
    if (!launch_seconds_.empty()) console_.result()["launch_seconds"] = launch_seconds_;
  }

  static double median_of(std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }

  void report_memory() {
    const PlanPeak peak =
        peak_of(plan_, inputs_->values(), devices_of(plan_).empty() ? FX_NONE : devices_of(plan_).front());
    console_.product() << "  memory     predicted peak " << bytes_text(peak.bytes) << "; ";
    const bool is_counted = program_->counted_peak() > 0;
    if (is_counted) {
      console_.product() << "counted " << bytes_text(program_->counted_peak()) << " with workspaces";
    } else {
      console_.product() << "arena " << bytes_text(program_->arena_bytes());
    }
    if (on_device_ != nullptr) {
      if (!is_counted) console_.product() << " and inputs " << bytes_text(on_device_->given_bytes());
      console_.product() << "; the GPU has " << size_text(on_device_->measured_bytes()) << " less free\n";
    } else {
      if (program_->reserved_peak() > 0)
        console_.product() << ", reserved besides inputs " << bytes_text(program_->reserved_peak());
      console_.product() << ", inputs copied " << bytes_text(inputs_->copied_bytes())
                         << "; the process's largest resident size " << size_text(resident_) << '\n';
    }
    console_.result()["memory"] = {{"predicted_peak_bytes", peak.bytes},
                                   {"arena_bytes", program_->arena_bytes()},
                                   {"counted_peak_bytes", program_->counted_peak()},
                                   {"reserved_peak_bytes", program_->reserved_peak()},
                                   {"copied_input_bytes", inputs_->copied_bytes()},
                                   {"largest_resident_bytes", resident_}};
    if (on_device_ == nullptr) return;
    console_.result()["memory"]["given_bytes"] = on_device_->given_bytes();
    console_.result()["memory"]["measured_bytes"] = on_device_->measured_bytes();
    compare_to_predicted();
  }

  // The caching allocator on the device, beside what `mem` predicts of it.
  void compare_to_predicted() {
    if (target_->allocator_events().empty()) return;
    const AllocatorConfig config = *parse_allocator_config(flags_.target.alloc_conf);
    const std::optional<AllocatorComparison> found =
        compare_allocator(module_, plan_, symbols(), program_->workspaces(), config, target_->allocator_events(),
                          on_device_->num_given());
    if (!found.has_value()) {
      console_.product() << "  allocator  not compared with mem: the step has several graphs or devices\n";
      return;
    }
    console_.product() << "  allocator  allocated " << bytes_text(on_device_->allocated_peak()) << ", predicted "
                       << bytes_text(found->predicted_allocated) << "; reserved "
                       << bytes_text(on_device_->reserved_peak()) << ", predicted "
                       << bytes_text(found->predicted_reserved) << '\n';
    const std::vector<int64_t>& workspaces = program_->workspaces();
    const bool has_workspaces =
        std::any_of(workspaces.begin(), workspaces.end(), [](int64_t bytes) { return bytes > 0; });
    console_.product() << "             "
                       << (found->first_difference.empty()
                               ? "all " + count_text(found->events, "event") + " as mem predicts them" +
                                     (has_workspaces ? ", given the kernels' workspaces" : "")
                               : "first that differs, behind " + count_text(found->events, "event") + ": " +
                                     printable_line(found->first_difference))
                       << '\n';
    nlohmann::ordered_json& memory = console_.result()["memory"];
    memory["allocated_peak_bytes"] = on_device_->allocated_peak();
    memory["predicted_allocated_bytes"] = found->predicted_allocated;
    memory["predicted_reserved_bytes"] = found->predicted_reserved;
    memory["equal_allocator_events"] = found->events;
    memory["first_difference"] = found->first_difference;
  }

  bool write_output() {
    std::vector<SafetensorsTensor> tensors;
    for (const Value& value : outputs_) tensors.push_back({value.name, value.dtype, value.sizes, value.bytes});
    for (const auto& [step, values] : kept_) {
      for (const Value& value : values) tensors.push_back({value.name, value.dtype, value.sizes, value.bytes});
    }
    return write(flags_.output, tensors);
  }

  // -- comparison

  // The step in float64, with its inputs as they were.
  Result<std::unique_ptr<Program>> prepare_in_float64() {
    wide_plan_ = widen(plan_, inputs_->values());
    inputs_->restore();
    Result<WidenedInputs> given =
        WidenedInputs::convert(plan_, wide_plan_->view(), inputs_->values(), inputs_->given());
    if (!given.ok()) return given.error();
    wide_inputs_ = *std::move(given);
    return target_->prepare_on_host(wide_plan_->view(), inputs_->values(), execute_options(wide_inputs_->given()));
  }

  // Outputs and kept values of the step in float64, by name.
  bool run_in_float64(std::map<std::string, Value>& values) {
    const Result<std::unique_ptr<Program>> program = prepare_in_float64();
    if (!program.ok()) return fail(program.error());
    const Status status = (*program)->run_watched([&](uint32_t step) {
      if (kept_steps_.count(step) == 0) return;
      for (Value& value : results_of(**program, step)) values[value.name] = std::move(value);
    });
    if (!status.ok()) return fail(status.error());
    for (Value& value : collect_outputs(**program, wide_plan_->view())) values[value.name] = std::move(value);
    return true;
  }

  // Whether the value is as expected; what is wrong with it as lines.
  bool compare_value(const Value& value, const SafetensorsTensor& expected,
                     const std::map<std::string, Value>& reference, std::string& lines) {
    nlohmann::ordered_json& list = console_.result()["comparison"];
    if (expected.dtype != value.dtype || expected.sizes != value.sizes) {
      lines += "  " + value.name + ": dtype or sizes are not those of the expected tensor\n";
      list.push_back({{"name", value.name}, {"same_shape", false}});
      return false;
    }
    const auto wide = reference.find(value.name);
    const std::vector<double> exact =
        wide == reference.end() ? std::vector<double>() : as_doubles(wide->second.dtype, wide->second.bytes);
    const Comparison found = compare(value.dtype, value.bytes, expected.bytes, exact, tolerance_);
    list.push_back({{"name", value.name},
                    {"elements", found.elements},
                    {"differing", found.differing},
                    {"over", found.over},
                    {"not_finite", found.not_finite}});
    if (found.passes) return true;
    lines += "  " + value.name + ", " + std::string(name_of(value.dtype)) + ": " + std::to_string(found.differing) +
             " of " + std::to_string(found.elements) + " differ, " + std::to_string(found.over) + " over tolerance, " +
             std::to_string(found.not_finite) + " not finite\n";
    lines += "    worst " + element_text(value.sizes, found.worst) + ": " + number_text(found.ours) + ", expected " +
             number_text(found.expected);
    if (found.reference.has_value()) lines += ", float64 " + number_text(*found.reference);
    lines += '\n';
    return false;
  }

  void compare_outputs() {
    const SafetensorsFile* file = open(flags_.expect);
    if (file == nullptr) return;
    std::map<std::string, Value> reference;
    if (tolerance_.kind == Tolerance::Kind::kAuto && !run_in_float64(reference)) return;
    console_.result()["comparison"] = nlohmann::ordered_json::array();
    std::vector<const Value*> values;
    for (const auto& [step, kept] : kept_) {
      for (const Value& value : kept) values.push_back(&value);
    }
    for (const Value& value : outputs_) values.push_back(&value);
    std::vector<Compared> compared;
    std::string lines;
    size_t wrong = 0;
    for (const Value* value : values) {
      const SafetensorsTensor* expected = file->content.find(value->name);
      if (expected == nullptr) continue;
      const bool differs = !compare_value(*value, *expected, reference, lines);
      compared.push_back({value->output, value->step, differs});
      wrong += differs ? 1 : 0;
    }
    if (compared.empty()) {
      fail({ErrorCode::kBadInput,
            flags_.expect + " has none of the outputs",
            "`fxopt run --output` shows what they are called",
            {}});
      return;
    }
    if (wrong == 0) {
      console_.product() << "  as expected: " << count_text(compared.size(), "value") << " within " << flags_.tolerance
                         << '\n';
      return;
    }
    console_.product() << lines;
    print_suspects(compared);
    print_far_step();
    fail({ErrorCode::kOutputsDiffer,
          std::to_string(wrong) + " of " + count_text(compared.size(), "value") + " differ from " + flags_.expect,
          "",
          {}});
  }

  // Runs the step again, beside itself in float64: where outputs alone leave many suspects, this names a kernel that is wrong in one type.
  void print_far_step() {
    const int64_t bytes = bytes_of_results(plan_, inputs_->values());
    if (bytes > kMostKept) {
      console_.product() << "  nodes are not compared with float64: their results are " << size_text(bytes) << '\n';
      return;
    }
    const Result<std::unique_ptr<Program>> wide = prepare_in_float64();
    if (!wide.ok()) return static_cast<void>(fail(wide.error()));
    if (!restore()) return;
    const Result<std::optional<uint32_t>> found = first_far_step(*program_, **wide, inputs_->values());
    if (!found.ok()) return static_cast<void>(fail(found.error()));
    if (!found->has_value()) {
      console_.product()
          << "  every node is near its float64: a mistake would be in both types, or in what is expected\n";
      return;
    }
    const std::string name(text_at(plan_, plan_.nodes[plan_.steps[**found].node].name));
    console_.result()["first_far_from_float64"] = name;
    console_.product() << "  first node that is far from itself in float64: %" << printable_line(name) << '\n';
  }

  void print_suspects(const std::vector<Compared>& compared) {
    const std::vector<uint32_t> steps = suspects(plan_, compared);
    std::string names;
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string name(text_at(plan_, plan_.nodes[plan_.steps[steps[i]].node].name));
      list.push_back(name);
      if (i < 5) names += (i > 0 ? ", %" : "%") + name;
    }
    console_.result()["suspects"] = std::move(list);
    if (steps.empty()) {
      console_.product() << "  suspects: no one step explains all that differs\n";
    } else {
      console_.product() << "  suspects, the likeliest first: " << names
                         << (steps.size() > 5 ? " and " + std::to_string(steps.size() - 5) + " more" : "") << '\n';
    }
  }

  Console& console_;
  const Module& module_;
  const FxPlan& plan_;
  const RunStepFlags& flags_;
  const std::string& input_;
  const ScalarValues::SymbolOf& symbols_;
  const std::function<Status(const SymbolValues&)>& check_guards_;
  Tolerance tolerance_;
  std::unique_ptr<RunTarget> target_;
  Interrupts interrupts_;
  std::map<std::string, SafetensorsFile> files_;
  std::vector<std::unique_ptr<NpyFile>> arrays_;
  InputOptions options_;
  std::unique_ptr<StepInputs> inputs_;
  std::unique_ptr<Program> program_;
  DeviceProgram* on_device_ = nullptr;  // the same, on a device
  std::unique_ptr<Plan> wide_plan_;
  std::optional<WidenedInputs> wide_inputs_;
  std::vector<double> seconds_, launch_seconds_;
  std::vector<FxStepTime> times_;  // by step, where they are wanted
  int64_t resident_ = 0;           // after the first run
  std::vector<Value> outputs_;
  std::map<uint32_t, const void*> drawn_;  // masks of --draws, by step
  std::map<uint32_t, Value> masks_;        // of --save-draws, by step
  std::set<uint32_t> kept_steps_;
  std::map<uint32_t, std::vector<Value>> kept_;  // by step
};

}  // namespace

Status check_step_flags(const RunStepFlags& flags) {
  if (!flags.fill.empty() && !fill_by_name(flags.fill).has_value()) {
    return Error{
        ErrorCode::kBadOptionValue, "--fill takes random, ramp, zeros or ones, not '" + flags.fill + "'", "", {}};
  }
  if (const Result<Tolerance> tolerance = parse_tolerance(flags.tolerance); !tolerance.ok()) return tolerance.error();
  const auto needs = [](const char* flag, const char* other) {
    return Status(Error{ErrorCode::kBadOptionValue, std::string(flag) + " needs " + other, "", {}});
  };
  if (flags.repeat == 0) return Error{ErrorCode::kBadOptionValue, "--repeat takes 1 or more, not 0", "", {}};
  if (!flags.save.empty() && flags.output.empty()) return needs("--save", "--output, which it is written to");
  if (!flags.profile.empty() && !flags.per_node) return needs("--profile", "--per-node, whose table it adds to");
  return check_target_flags(flags.target);
}

void run_step(Console& console, const Module& module, const FxPlan& plan, const RunStepFlags& flags,
              const std::string& input, const ScalarValues::SymbolOf& symbols,
              const std::function<Status(const SymbolValues&)>& check_guards) {
  StepRun(console, module, plan, flags, input, symbols, check_guards).run();
}

}  // namespace fxopt
