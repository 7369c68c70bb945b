#include "cli/memory_options.h"

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/device.h"
#include "cli/doubts.h"
#include "cli/files.h"
#include "cli/print/table.h"
#include "cli/take.h"
#include "core/file.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "ir/io/measurement.h"

namespace fxopt {
namespace {

constexpr int64_t kMinPlainBytes = int64_t{1} << 20;  // smaller --device-memory needs a unit

// Parses one of the words that an option takes.
template <class Value>
Result<Value> choice(const std::string& option, const std::string& text,
                     const std::vector<std::pair<std::string_view, Value>>& choices) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names.push_back(name);
  }
  std::vector<std::string> first(names.begin(), names.end() - 1);
  return bad_value_error(
      option + " takes " + join(first, ", ") + " or " + std::string(names.back()) + ", not '" + text + "'",
      suggestion(text, names, ""));
}

Result<std::optional<SteadyState>> steady_state(const MemoryFlags& flags) {
  const Result<OptimizerState> optimizer = choice<OptimizerState>(
      "--optimizer", flags.optimizer.empty() ? "adam" : flags.optimizer,
      {{"adam", OptimizerState::kAdam}, {"momentum", OptimizerState::kMomentum}, {"none", OptimizerState::kNone}});
  if (!optimizer.ok()) return optimizer.error();
  const Result<bool> keep = choice<bool>("--gradients", flags.gradients.empty() ? "kept" : flags.gradients,
                                         {{"kept", true}, {"freed", false}});
  if (!keep.ok()) return keep.error();
  if (!flags.steady && !(flags.optimizer.empty() && flags.gradients.empty())) {
    return usage_error("--optimizer and --gradients need --steady", "add --steady");
  }
  if (!flags.steady) return std::optional<SteadyState>();
  return std::optional<SteadyState>(SteadyState{*optimizer, *keep});
}

// Parses the size of a device's memory. Refuses an implausible number, because its unit is probably
// wrong or missing.
Result<int64_t> device_memory_option(const std::string& text) {
  Result<int64_t> bytes = bytes_option("--device-memory", text);
  if (!bytes.ok()) return bytes;
  if (*bytes > kMaxDeviceBytes) {
    return bad_value_error("--device-memory is at most 1024TiB, not '" + text + "'",
                           "check the unit; without --device-memory there is no limit");
  }
  if (*bytes < kMinPlainBytes && !text.ends_with('B')) {
    return bad_value_error("--device-memory " + text + " is " + std::to_string(*bytes) + " bytes",
                           "write a unit: " + text + "GiB, or " + text + "B for bytes");
  }
  return bytes;
}

}  // namespace

void declare_memory_flags(Options options, MemoryFlags& flags) {
  options.add("--top", flags.top, "list the N largest storages at the peak (default: 20)").type("N");
  options
      .add("--module-depth", flags.module_depth,
           "sum memory by module, using the first N parts of each module path (default: 3)")
      .type("N");
  declare_measure_flags(options, flags);
}

void declare_measure_flags(Options options, MemoryFlags& flags) {
  options
      .add(
          "--symbol", flags.symbols,
          "value of a symbolic size (repeatable): a number, a range such as 2..64, or min or max of the recorded range")
      .type("NAME=VALUE")
      .one_each();
  options
      .add("--alloc-conf", flags.alloc_conf,
           "settings of the simulated caching allocator, in the syntax of PYTORCH_ALLOC_CONF. fxopt always simulates "
           "the allocator twice: without and with expandable segments")
      .type("CONF");
  options
      .add("--device-memory", flags.device_memory,
           "memory size of the device, such as 80GiB (default: the size in the profile of --device, or no limit). The "
           "report shows where the allocator runs out of memory")
      .type("BYTES");
  options
      .add("--device", flags.device,
           "device to simulate, such as h100, or a profile file such as ./mine.device. A profile describes the memory "
           "of the device and the workspaces of kernels; see `fxopt help devices`")
      .type("PROFILE");
  options
      .add("--measurement", flags.measurement,
           "file with measured times of calls, which replace the estimated times in reports; see `fxopt help "
           "measurements`")
      .type("FILE");
  options
      .add("--input-lifetime", flags.input_lifetime,
           "caller (default): only inputs that are marked as donated are freed after their last use. boxed: all inputs "
           "except parameters, buffers, optimizer state and constants are freed after their last use")
      .type("WHO");
  options
      .add(
          "--comm-lifetime", flags.comm_lifetime,
          "wait (default): the tensors of a collective stay allocated until the wait of the collective. record_stream: "
          "the tensors can be freed before the wait, but the allocator reuses their memory only after the wait")
      .type("HOW");
  options.flag("--steady", flags.steady,
               "measure a later training step instead of the first step. Gradients and optimizer state then exist "
               "already, and the allocator starts with the segments of earlier steps");
  options
      .add("--optimizer", flags.optimizer,
           "with --steady: optimizer state to add for each parameter: adam (default), momentum or none. If inputs of "
           "the graph contain optimizer state, fxopt adds nothing")
      .type("KIND");
  options
      .add("--gradients", flags.gradients,
           "with --steady, one of two values. kept (default): each step adds to the gradients of the previous step. "
           "freed: gradients are freed before each step")
      .type("HOW");
}

Footprint measure_logged(Console& console, const std::string& path, const Graph& graph, const MeasureOptions& options) {
  Stopwatch watch;
  Footprint footprint = measure(graph, options);
  const Module& module = graph.module();
  std::vector<std::string> devices;
  for (const DeviceFootprint& device : footprint.devices) {
    devices.push_back(device.device.is_valid() ? std::string(module.text(device.device)) : "no device");
  }
  console.stage("measured @" + std::string(module.text(graph.name())) + " of " + shown_input(path) + ": " +
                    (devices.empty() ? "no storages" : join(devices, ", ")),
                watch.lap());
  return footprint;
}

void warn_of_memory(Console& console, const std::string& path, const Footprint& footprint, const MemoryView& view) {
  const Where where = where_in(shown_input(path), footprint.graph->module().text(footprint.graph->name()));
  warn_of_doubts(console, where.file, *footprint.graph, footprint.phases,
                 [&footprint]() -> const StorageMap& { return footprint.storages; });
  const size_t unknown = footprint.memory.unknown_buffers;
  if (unknown > 0) {
    std::vector<SymbolRow> symbols = symbol_rows(footprint);
    std::erase_if(symbols, [](const SymbolRow& symbol) { return symbol.value.has_value(); });
    std::vector<std::string> names;
    for (const SymbolRow& symbol : symbols) names.push_back(printable_line(symbol.name));
    console.warning("unknown-sizes", where,
                    count_text(unknown, "storage") + " of unknown size, so each peak is a lower bound" +
                        (names.empty() ? ""
                                       : ". Set these symbols with --symbol NAME=VALUE: " +
                                             join_first(std::move(names), kMaxShownSymbols)));
  }
  size_t calls = 0;
  for (const DeviceFootprint& device : footprint.devices) calls += device.trace.unknown_hidden.size();
  if (calls > 0) {
    console.warning("unknown-hidden-memory", where,
                    count_text(calls, "call") + (calls == 1 ? " uses" : " use") +
                        " workspaces or other hidden memory of unknown size. All peaks except the ideal peak are lower "
                        "bounds");
  }
  if (const size_t left_out = footprint.num_unmeasured(); left_out > 0) {
    console.warning("unmeasured-devices", where,
                    "only the " + std::to_string(footprint.devices.size()) +
                        " devices with the largest ideal peaks are measured; " + std::to_string(left_out) +
                        " more devices are neither measured nor checked");
  }
  const bool is_served = std::any_of(footprint.devices.begin(), footprint.devices.end(),
                                     [](const DeviceFootprint& device) { return !device.replays.empty(); });
  if (!view.target.empty() && !footprint.devices.empty() && !is_served) {
    console.warning("no-gpu-tensors", where,
                    std::string(kNoGpuTensors) +
                        ", so --device and --device-memory check nothing. Remedy: " + std::string(kNoGpuTensorsHint));
  }
  if (view.measure.trace.steady.has_value() && footprint.memory.trained.empty()) {
    console.warning("no-gradients", where,
                    "the graph returns no gradient of a parameter, so --steady adds neither gradients nor optimizer "
                    "state");
  }
}

Result<int64_t> bytes_option(const std::string& option, const std::string& text) {
  const std::optional<int64_t> bytes = parse_bytes(text);
  if (bytes.has_value()) return *bytes;
  return bad_value_error(option + " takes a size, not '" + text + "'",
                         is_count(text)
                             ? "add a unit, and quote a size that has a space: '" + text + " GiB' or " + text + "B"
                             : "write it as in 70GiB, 70GB or 75161927680B; GiB is 2^30 and GB is 10^9");
}

Result<MemoryPlan> MemoryPlan::make(const MemoryFlags& flags) {
  MemoryPlan plan;
  plan.flags_ = flags;
  if (const Status status = take(plan.symbols_, parse_symbol_settings(flags.symbols)); !status.ok())
    return status.error();
  if (const Status status = take(plan.allocator_, parse_allocator_config(flags.alloc_conf)); !status.ok())
    return status.error();
  if (!flags.device_memory.empty()) {
    const Status status = take(plan.device_bytes_, device_memory_option(flags.device_memory));
    if (!status.ok()) return status.error();
  }
  Result<InputLifetime> lifetime = choice<InputLifetime>(
      "--input-lifetime", flags.input_lifetime, {{"caller", InputLifetime::kCaller}, {"boxed", InputLifetime::kBoxed}});
  if (const Status status = take(plan.inputs_, lifetime); !status.ok()) return status.error();
  Result<CommLifetime> comm =
      choice<CommLifetime>("--comm-lifetime", flags.comm_lifetime,
                           {{"wait", CommLifetime::kWait}, {"record_stream", CommLifetime::kRecordStream}});
  if (const Status status = take(plan.comm_, comm); !status.ok()) return status.error();
  if (const Status status = take(plan.steady_, steady_state(flags)); !status.ok()) return status.error();
  if (const Status status = take(plan.profile_, load_device_profile(flags.device)); !status.ok()) return status.error();
  if (flags.measurement.empty()) return plan;
  const Result<std::string> bytes = read_file(flags.measurement);
  if (!bytes.ok()) return bytes.error();
  const Status status = take(plan.measurement_, parse_measurement(*bytes, flags.measurement));
  if (!status.ok()) return status.error();
  return plan;
}

Result<MemoryView> MemoryPlan::view(Module& module, const std::string& file) const {
  const Result<BoundSymbols> symbols = bind_symbols(symbols_, module, file);
  if (!symbols.ok()) return symbols.error();
  MemoryView view;
  view.measure.memory = {symbols->values, symbols->ranges, inputs_, true};
  view.measure.trace = {flags_.device.empty() ? nullptr : profile_.get(), steady_, comm_};
  view.top = flags_.top;
  view.module_depth = flags_.module_depth;
  view.measure.allocator = allocator_;
  view.measure.device_bytes = device_bytes_;
  view.target = target();
  view.costs = {profile_.get(), measurement_.has_value() ? &*measurement_ : nullptr, symbols->values};
  return view;
}

bool MemoryPlan::wants_allocator() const {
  return !flags_.device.empty() || !flags_.alloc_conf.empty() || device_bytes_.has_value() || steady_.has_value();
}

std::string MemoryPlan::target() const {
  if (device_bytes_.has_value()) return "in " + size_text(*device_bytes_);
  std::vector<std::string> names;
  for (const std::string_view part : split_list(flags_.device)) {
    if (!is_framework_profile(part)) names.emplace_back(part);
  }
  return names.empty() ? "" : "on " + join(names, "+");
}

nlohmann::ordered_json MemoryPlan::json() const {
  return {{"device", profile_->name},
          {"alloc_conf", flags_.alloc_conf},
          {"device_memory", flags_.device_memory},
          {"input_lifetime", flags_.input_lifetime},
          {"comm_lifetime", flags_.comm_lifetime},
          {"steady", flags_.steady},
          {"optimizer", !flags_.steady             ? ""
                        : flags_.optimizer.empty() ? "adam"
                                                   : flags_.optimizer},
          {"gradients", !flags_.steady             ? ""
                        : flags_.gradients.empty() ? "kept"
                                                   : flags_.gradients},
          {"symbols", symbol_settings_json(symbols_)}};
}

}  // namespace fxopt
