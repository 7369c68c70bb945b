#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "core/allocator/caching_allocator.h"
#include "core/result.h"
#include "runtime/run/plugin.h"
#include "runtime/run/program.h"

namespace fxopt {

struct DeviceOptions {
  uint32_t streams = 1;
  // Called for each event of the caching allocator, in the order in which the step allocates and
  // frees. May be empty.
  std::function<void(const AllocatorEvent&)> observe_allocator;
};

// A plan that is ready to run on a device of a plugin. All memory is allocated, and all addresses
// are known, before the first run. With the caching allocator, prepare() makes the allocations of
// the training step once, and each run uses their addresses.
class DeviceProgram final : public Program {
 public:
  // `device` must outlive the program. Fails with the errors of HostProgram, with kDeviceFailed, or
  // with kOutOfMemory. The error kOutOfMemory states the node, the requested bytes and the free
  // bytes.
  static Result<std::unique_ptr<DeviceProgram>> prepare(const FxPlan& plan, const ScalarValues& values,
                                                        const ExecuteOptions& options, PluginDevice& device,
                                                        const DeviceOptions& device_options);
  ~DeviceProgram() override;

  Status run() override;
  Status upload() override;
  const void* bytes_of(uint32_t storage) const override;
  Status read_status() const override { return read_status_; }
  int64_t reserved_peak() const override;
  // Returns the peak of allocated bytes in the caching allocator, like
  // torch.cuda.max_memory_allocated. Returns 0 without the caching allocator.
  int64_t allocated_peak() const;
  Result<std::vector<FxStepTime>> time_steps() override;

  // Returns the time of the last run. The device's events measure this time, from before the first
  // launch to after the last launch.
  double device_seconds() const { return device_seconds_; }
  // Returns the CPU time that the driver's launch calls took in the last run.
  double launch_seconds() const { return launch_seconds_; }
  // These functions return the total bytes and the number of the caller's storages on the device.
  int64_t given_bytes() const { return given_bytes_; }
  size_t num_given() const { return num_given_; }
  // Returns the device memory that prepare() took, as the device reports it. This memory includes
  // tables of calls, kernel code, the driver's rounding, and memory that other programs took at the
  // same time.
  int64_t measured_bytes() const { return measured_bytes_; }

 private:
  struct Assertion {
    uint32_t step;
    BoundCall call;
  };

  DeviceProgram(const FxPlan& plan, const ScalarValues& values, const ExecuteOptions& options, PluginDevice& device,
                const DeviceOptions& device_options)
      : Program(plan, values, options, *device.calls().kernels), device_(device), device_options_(device_options) {}

  const void* drawn_at(uint32_t step) const override;
  Status prepare_all();
  Status take_memory();
  Status take_given();
  Status take_arena();
  Status take_masks();
  Status walk_allocator();
  Error gave_back(uint32_t step) const;
  Status take_from_allocator(uint32_t step, uint32_t storage, int64_t bytes, void*& address);
  Result<uint64_t> allocate(int64_t bytes, const char* what);
  Status bind_assertions();
  Status build();
  void add_launches(uint32_t step, const FxCall& call, const FxKernel& kernel, std::vector<FxLaunch>& launches) const;
  Status run_range(uint32_t first, uint32_t end, FxStepTime* times);
  Status check_assertions(uint32_t first, uint32_t end);
  Status of_call(int32_t status) const;
  int64_t bytes_of_storage(uint32_t storage) const;

  PluginDevice& device_;
  DeviceOptions device_options_;
  FxProgram* program_ = nullptr;
  std::vector<uint64_t> blocks_;  // device blocks that this program owns
  std::unique_ptr<CachingAllocator> allocator_;
  std::set<uint64_t> allocated_;      // blocks that are not freed yet
  std::vector<void*> workspaces_at_;  // by step: address of the workspace
  std::vector<void*> masks_;          // by step: address of the mask (--draws)
  std::vector<Assertion> assertions_;
  uint64_t slots_ = 0;  // address of an array with a bool for each assertion
  int64_t given_bytes_ = 0, counted_ = 0, measured_bytes_ = 0;
  size_t num_given_ = 0;
  double device_seconds_ = 0, launch_seconds_ = 0;
  mutable std::vector<std::byte> read_;
  mutable Status read_status_ = ok_status();
};

}  // namespace fxopt
