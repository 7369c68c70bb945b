#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.h"
#include "runtime/cpu/threads.h"
#include "runtime/run/host_memory.h"
#include "runtime/run/program.h"

namespace fxopt {

// A plan that is ready to run on the CPU.
class HostProgram final : public Program {
 public:
  // `options.kernels` and `options.threads` must be set. Errors:
  // - kUnsupportedOp: A step has no CPU kernel, a size is known only while steps run, or a storage
  //   of the caller is missing.
  // - kUnknownSize: place() cannot place the storages.
  // - kOutOfMemory: Memory ran out.
  static Result<std::unique_ptr<HostProgram>> prepare(const FxPlan& plan, const ScalarValues& values,
                                                      const ExecuteOptions& options);

  Status run() override;
  Result<std::vector<FxStepTime>> time_steps() override;
  const void* bytes_of(uint32_t storage) const override { return addresses_[storage]; }
  int64_t reserved_peak() const override { return allocator_ == nullptr ? 0 : allocator_->reserved_peak(); }

 private:
  HostProgram(const FxPlan& plan, const ScalarValues& values, const ExecuteOptions& options)
      : Program(plan, values, options, *options.kernels) {}
  Status take_arena();
  Status take_memory();
  Status run_step(uint32_t step);
  Status run_kernel(uint32_t step);
  Status check_assertion(uint32_t step) const;
  Status take_blocks(uint32_t step);
  void give_blocks(uint32_t step);
  void write_guards(uint32_t step);
  Status check_guards(uint32_t step) const;
  void poison_frees(uint32_t step);

  HostBlock arena_;
  // The allocator that allocates storages one by one. The pointer is null if storages are in the
  // arena.
  std::unique_ptr<HostAllocator> allocator_;
  void* workspace_ = nullptr;
  int64_t counted_ = 0;
  // Times of the current run, or null if steps are not timed.
  std::vector<FxStepTime>* times_ = nullptr;
};

}  // namespace fxopt
