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

// The options of the commands that measure memory. The values are stored as the user wrote them.
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
// Declares only the options that affect the measurement. Omits --top and --module-depth, which
// affect only the lists in a report.
void declare_measure_flags(Options options, MemoryFlags& flags);

// Texts for a graph without tensors on a GPU. On this graph, --device and --device-memory have no
// effect. The first text is the reason, and the second text is the remedy.
inline constexpr std::string_view kNoGpuTensors = "no tensor of this graph is on a GPU";
inline constexpr std::string_view kNoGpuTensorsHint =
    "trace the step for cuda: fake tensors need no GPU, as scripts/README.md shows";

// The parsed options.
class MemoryPlan {
 public:
  // Parses the flags and loads the files that they name. Fails with kBadOptionValue or kUsage, or
  // with the errors of parse_allocator_config(), load_device_profile(), read_file() and
  // parse_measurement().
  static Result<MemoryPlan> make(const MemoryFlags& flags);

  // Binds the symbols of a module and returns the view for measuring the module. The view refers to
  // the plan. Fails with the errors of bind_symbols().
  Result<MemoryView> view(Module& module, const std::string& file) const;

  // Returns the settings that affect the figures of a report. Reports with equal settings can be
  // compared.
  nlohmann::ordered_json json() const;

  // True if the allocator uses expandable segments. If true, limits on allocator peaks apply to the
  // peaks with expandable segments.
  bool expandable() const { return allocator_.expandable_segments; }
  // True if --device or --device-memory determines the available memory.
  bool knows_device_memory() const {
    return device_bytes_.has_value() || profile_->constant("device.memory").has_value();
  }
  // The profile that --device names. Without --device, it contains only the FLOP counts of
  // operators.
  const DeviceProfile& profile() const { return *profile_; }
  const AllocatorConfig& allocator() const { return allocator_; }
  // True if a report must show the allocator's peaks in addition to the ideal peak, which is the
  // largest number of live bytes without allocator overhead. This is the case if --device,
  // --device-memory, --alloc-conf or --steady is given.
  bool wants_allocator() const;
  // Returns the memory that the step must fit, as text: "on h100" or "in 16.00 GiB". Returns an
  // empty text if neither --device nor --device-memory is given.
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

// Calls measure() and reports it as a stage of work.
Footprint measure_logged(Console& console, const std::string& path, const Graph& graph, const MeasureOptions& options);

// Prints warnings about gaps in the figures of a graph. Examples of gaps are unknown sizes of
// storages, and unknown sizes of kernels' workspaces. With --steady, another example is a graph
// that returns no gradients, because gradients and optimizer state are then missing in the figures.
void warn_of_memory(Console& console, const std::string& path, const Footprint& footprint, const MemoryView& view);

// Converts a size such as "70GiB" into bytes. Fails with kBadOptionValue and a message that names
// the option.
Result<int64_t> bytes_option(const std::string& option, const std::string& text);

}  // namespace fxopt
