#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/report/memory/report.h"
#include "cli/symbols.h"
#include "core/allocator/config.h"
#include "core/result.h"
#include "ir/device/profile.h"
#include "ir/graph/module.h"

namespace fxopt {

class Console;
class Options;

// The options of every command that measures memory, as given.
struct MemoryFlags {
  size_t top = 20;
  size_t module_depth = 3;
  std::vector<std::string> symbols;
  std::string alloc_conf;
  std::string device_memory;
  std::string device;
  std::string input_lifetime = "caller";
  std::string comm_lifetime = "wait";
  bool steady = false;
  std::string optimizer, gradients;  // empty: not given
  std::string measurement;
};

// Declares the options. `flags` must outlive the parsing.
void declare_memory_flags(Options options, MemoryFlags& flags);
// Declares the options that affect the measurement, without those that affect lists.
void declare_measure_flags(Options options, MemoryFlags& flags);

// The warning for a graph that --device and --device-memory do not affect, and its remedy.
inline constexpr std::string_view kNoGpuTensors = "no tensor of this graph is on a GPU";
inline constexpr std::string_view kNoGpuTensorsHint =
    "trace the step for cuda: fake tensors need no GPU, as scripts/README.md shows";

// The parsed options.
class MemoryPlan {
 public:
  // Errors: kBadOptionValue, kUsage, those of parse_allocator_config() and of
  // load_device_profile().
  static Result<MemoryPlan> make(const MemoryFlags& flags);

  // The view of a module with its symbols bound. It refers to the plan. Errors: those of
  // bind_symbols().
  Result<MemoryView> view(Module& module, const std::string& file) const;

  // The settings that figures depend on, for a report: reports with equal settings can be compared.
  nlohmann::ordered_json json() const;

  // True if the allocator uses expandable segments: gates check those peaks.
  bool expandable() const { return allocator_.expandable_segments; }
  // True if --device or --device-memory gives the available memory.
  bool knows_device_memory() const {
    return device_bytes_.has_value() || profile_->constant("device.memory").has_value();
  }
  // The profile named by --device; without it, the known work of operators on any device.
  const DeviceProfile& profile() const { return *profile_; }
  const AllocatorConfig& allocator() const { return allocator_; }
  // True if the caller asks for anything besides the ideal peak: a device, an allocator, a later
  // step.
  bool wants_allocator() const;
  // The target of the fit: "on h100", "in 16.00 GiB"; empty if it is not known.
  std::string target() const;

 private:
  MemoryFlags flags_;
  std::vector<SymbolSetting> symbols_;
  AllocatorConfig allocator_;
  std::optional<int64_t> device_bytes_;
  std::unique_ptr<DeviceProfile> profile_;
  std::optional<Measurement> measurement_;
  InputLifetime inputs_ = InputLifetime::kCaller;
  CommLifetime comm_ = CommLifetime::kWait;
  std::optional<SteadyState> steady_;
};

// measure(), reported as a stage.
Footprint measure_logged(Console& console, const std::string& path, const Graph& graph, const MeasureOptions& options);

// Warns of gaps in the figures of a graph: unknown sizes and hidden memory, a later step without
// gradients.
void warn_of_memory(Console& console, const std::string& path, const Footprint& footprint, const MemoryView& view);

// "70GiB" as a number. Error: kBadOptionValue, with the name of the option.
Result<int64_t> bytes_option(const std::string& option, const std::string& text);

}  // namespace fxopt
