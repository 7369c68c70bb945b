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

// Declares them. `flags` must outlive the parsing.
void declare_memory_flags(Options options, MemoryFlags& flags);
// Those that say how to measure, without those that say what to list.
void declare_measure_flags(Options options, MemoryFlags& flags);

// Of a graph that --device and --device-memory say nothing about, and what to do.
inline constexpr std::string_view kNoGpuTensors = "no tensor of this graph is on a GPU";
inline constexpr std::string_view kNoGpuTensorsHint =
    "trace the step for cuda: fake tensors need no GPU, as scripts/README.md shows";

// The options, understood.
class MemoryPlan {
 public:
  // Errors: kBadOptionValue, kUsage, those of parse_allocator_config() and of load_device_profile().
  static Result<MemoryPlan> make(const MemoryFlags& flags);

  // How to look at a module: its symbols bound. Errors: those of bind_symbols(). The view refers to the plan.
  Result<MemoryView> view(Module& module, const std::string& file) const;

  // What figures depend on, for a report: two reports can be compared where this is the same.
  nlohmann::ordered_json json() const;

  // True when the allocator is set to expandable segments: gates look at these.
  bool expandable() const { return allocator_.expandable_segments; }
  // True where --device or --device-memory tell what there is to fit into.
  bool knows_device_memory() const {
    return device_bytes_.has_value() || profile_->constant("device.memory").has_value();
  }
  // What --device names; without it, what is known of operators on any device.
  const DeviceProfile& profile() const { return *profile_; }
  const AllocatorConfig& allocator() const { return allocator_; }
  // True where more than the ideal peak is asked for: a device, an allocator, a later step.
  bool wants_allocator() const;
  // What a step is to fit: "on h100", "in 16.00 GiB"; empty where that is not told.
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

// measure(), told as a stage.
Footprint measure_told(Console& console, const std::string& path, const Graph& graph, const MeasureOptions& options);

// What the figures of a graph leave out, as warnings: sizes and hidden memory that are unknown, a later step without
// gradients.
void warn_of_memory(Console& console, const std::string& path, const Footprint& footprint, const MemoryView& view);

// "70GiB" as a number; kBadOptionValue, naming the option, for what is none.
Result<int64_t> bytes_option(const std::string& option, const std::string& text);

}  // namespace fxopt
