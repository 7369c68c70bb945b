#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/result.h"
#include "runtime/cpu/threads.h"
#include "runtime/run/device_program.h"
#include "runtime/run/host_program.h"
#include "runtime/run/plugin.h"

namespace fxopt {

struct RunTargetFlags {
  std::string device = "cpu";    // or "cuda", "cuda:1"
  std::string plugin;            // --plugin
  uint32_t threads = 0;          // 0: one per processor
  std::string isa;               // empty: $FXOPT_ISA if set, else the widest
  std::string memory = "arena";  // or "allocator", "blocks"
  std::string alloc_conf;        // allocator settings if `memory` is "allocator"
  std::string debug;             // empty or "memory"
  uint32_t streams = 1;
};

// Fails with kBadOptionValue if the device is not cpu, cuda or cuda:N.
Status check_device_name(const std::string& device);

// Fails with kBadOptionValue if a flag has an invalid value, and with kDeviceFailed if the device
// does not support a flag.
Status check_target_flags(const RunTargetFlags& flags);

// The device of a step: the CPU, or a device of a plugin.
class RunTarget {
 public:
  // Opens the device. `flags` must pass check_target_flags() and must outlive the object. Fails
  // with kInternal if a thread flushes subnormal numbers to zero. Also fails with the errors of
  // open_plugin() and PluginDevice::open().
  static Result<std::unique_ptr<RunTarget>> open(const RunTargetFlags& flags);

  bool is_device() const { return device_ != nullptr; }
  // Returns "the CPU", or text such as "cuda:0 (NVIDIA H100 80GB HBM3)".
  std::string name() const;
  // Returns text such as "avx512, 2 threads" or "sm_90, 1 stream".
  std::string how() const;
  const PluginDevice* device() const { return device_.get(); }

  // Applies the flags of open() to `options`, and prepares the plan for execution. prepare() uses
  // the device of the flags. prepare_on_host() always uses the CPU and the arena.
  Result<std::unique_ptr<Program>> prepare(const FxPlan& plan, const ScalarValues& values, ExecuteOptions options);
  Result<std::unique_ptr<Program>> prepare_on_host(const FxPlan& plan, const ScalarValues& values,
                                                   ExecuteOptions options) const;
  Status check_subnormals() const;
  // The caching allocator's events in the last prepare() for a device. Empty if no such call was
  // made.
  const std::vector<AllocatorEvent>& allocator_events() const { return events_; }
  void add_to(nlohmann::ordered_json& result) const;

 private:
  explicit RunTarget(const RunTargetFlags& flags) : flags_(flags) {}
  void set(ExecuteOptions& options) const;

  const RunTargetFlags& flags_;
  const FxKernelTable* kernels_ = nullptr;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<PluginDevice> device_;
  std::vector<AllocatorEvent> events_;
};

}  // namespace fxopt
