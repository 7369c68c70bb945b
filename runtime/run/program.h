#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/allocator/config.h"
#include "core/result.h"
#include "runtime/abi/device.h"
#include "runtime/abi/kernel.h"
#include "runtime/abi/plan.h"
#include "runtime/ops/bind.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/place.h"
#include "runtime/run/tensors.h"

namespace fxopt {

class ThreadPool;

// The kind of memory that contains the storages made by the plan's steps. Inputs and constants are
// not included.
enum class StorageMemory : uint8_t {
  kArena,  // in one block of memory, at the offsets that place() assigns
  // Each storage has its own block of memory from the caching allocator. The block is allocated at
  // the start of the storage's lifetime, and freed at the end of the lifetime. A block of an output
  // is kept after the run. On a device, prepare() makes these allocations and frees once, without
  // running kernels, and stores the address of each block. The caching allocator keeps freed blocks
  // in its cache, so the device memory at these addresses remains allocated. If the allocator
  // returns memory to the device, prepare() fails with kOutOfMemory. Every run uses the stored
  // addresses.
  kAllocator,
  kBlocks,  // like kAllocator, but each block comes directly from the system; only on the CPU
};

// Options for executing one training step.
struct ExecuteOptions {
  uint64_t seed = 0;
  StorageMemory memory = StorageMemory::kArena;
  AllocatorConfig allocator;  // settings of the caching allocator, for kAllocator
  // The host memory of the caller's storages (inputs and constants), by storage. The pointer is
  // null if a storage has no such memory.
  std::vector<void*> given;
  // Returns a row-major mask of bools that a dropout call uses instead of a random mask (--draws).
  // `step` is the index of the call in FxPlan::steps. If the function returns null, the call draws
  // its own mask. The function may be empty.
  std::function<const void*(uint32_t step)> drawn;
  // Called before each step of the plan. If the function returns true, the run ends with an error.
  // On a device, the function is called once for each group of steps. A group ends with a watched
  // step (see `after`) or with the last step of the plan.
  std::function<bool()> is_interrupted;
  // Called after each watched step of the plan, while values can be inspected. May be empty. A step
  // is watched if `is_watched` is empty or returns true for the step.
  std::function<void(uint32_t step)> after;
  std::function<bool(uint32_t step)> is_watched;

  // The options `kernels`, `threads`, `alone_elements` and `debug_memory` apply only to a program
  // on the CPU. A program on the CPU requires `kernels` and `threads`. `kernels` has the kernels of
  // one instruction set.
  const FxKernelTable* kernels = nullptr;
  ThreadPool* threads = nullptr;
  // A call with at most this many elements runs on one thread, because the call ends before another
  // thread would wake up.
  int64_t alone_elements = 16384;
  // If true, every storage and workspace in the arena has guards, and unused bytes are signalling
  // NaNs. The guards are checked after each step that uses the storage or workspace. A kernel that
  // writes beyond its operand fails with the node's name. A kernel that reads beyond its operand
  // computes NaNs.
  bool debug_memory = false;
};

// A plan that is ready to run on one device. Each step is bound to a kernel, and each storage is
// bound to memory.
class Program {
 public:
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Runs all steps once. Fails with kRunFailed, kOutOfMemory or kDeviceFailed. The error kRunFailed
  // states the node and one of these causes: an index beyond its dimension, an integer division by
  // zero, a failed assertion, or an interruption.
  virtual Status run() = 0;
  // Copies the current contents of the caller's storages to the device. The first run needs no call
  // of upload().
  virtual Status upload() { return ok_status(); }
  // Runs once, one step of the plan at a time, and returns the time of each step. A step without
  // work has the time 0. The computed values are the same as in run(). On a device,
  // `device_seconds` is measured by the device's events. On the CPU, `device_seconds` is measured
  // by the clock, and launches take no time.
  virtual Result<std::vector<FxStepTime>> time_steps() = 0;
  // Returns a host pointer to the bytes of a storage, or null if the storage has no memory. The
  // bytes of a device are copied to the host. The bytes are valid until the next call of this
  // object. The result of a step is available until the result is freed. If a device cannot be
  // read, returns zeros, and read_status() reports the error from then on.
  virtual const void* bytes_of(uint32_t storage) const = 0;
  virtual Status read_status() const { return ok_status(); }

  // Runs once and calls `after` after each step of the plan, instead of ExecuteOptions::after.
  Status run_watched(const std::function<void(uint32_t step)>& after);
  // Runs twice and compares the results of each step of the plan. Returns the first step with
  // different bits, or nullopt if all bits are equal. `restore` resets the inputs before a run.
  // Takes twice as long as run(), plus hashing.
  std::optional<uint32_t> first_difference(const std::function<void()>& restore);

  const FxPlan& plan() const { return plan_; }
  // Returns the bytes of the kernels' workspaces, by step.
  const std::vector<int64_t>& workspaces() const { return workspaces_; }
  int64_t arena_bytes() const { return placement_.arena_bytes; }
  // Returns the largest number of bytes that any step has in memory. The number of a step is the
  // sum of these sizes:
  // - the caller's storages;
  // - the storages that were allocated before the step's kernel runs and are not yet freed;
  // - the workspace of the step's kernel.
  // Returns 0 if the storages are in an arena.
  int64_t counted_peak() const { return counted_peak_; }
  // Returns the largest number of bytes that the caching allocator reserved. Returns 0 without the
  // caching allocator.
  virtual int64_t reserved_peak() const { return 0; }

 protected:
  struct Bound {
    BoundCall call;
    const FxKernel* kernel = nullptr;  // null if the step needs no kernel, see is_work()
  };

  Program(const FxPlan& plan, const ScalarValues& values, const ExecuteOptions& options, const FxKernelTable& kernels)
      : plan_(plan), values_(values), options_(options), kernels_(kernels) {}

  // Finds the kernel of each step that needs a kernel (is_work()), and stores the kernel and the
  // step's call in bound_. The call contains the addresses of the step's tensors. If addresses_ is
  // not yet filled, the call contains null addresses, and bind() only determines the sizes of
  // workspaces. Fails with kUnsupportedOp if this device has no kernel for a step.
  Status bind();
  Status bind_step_at(uint32_t step);
  // Places storages and workspaces, with `guard_bytes` bytes before and after each block. Sets
  // taken_.
  Status place_storages(int64_t guard_bytes);
  Status check_given() const;
  Status check_storage(uint32_t storage, uint32_t step) const;
  bool holds(const PlacedTensor& tensor, const void* storage) const;
  // Returns the dropout mask that the user gives for the step (option --draws). Returns null if the
  // user gives no mask. A dropout then draws a random mask.
  virtual const void* drawn_at(uint32_t step) const { return options_.drawn ? options_.drawn(step) : nullptr; }
  // Returns the seed and the slot that select the step's random numbers.
  FxDrawState draw_of(uint32_t step) const;
  bool is_interrupted() const { return options_.is_interrupted && options_.is_interrupted(); }
  bool is_watched(uint32_t step) const { return options_.after && (!options_.is_watched || options_.is_watched(step)); }

  // Returns the tensor that an assertion reads. If the assertion reads a number, checks the number
  // here, sets `status` and returns nullopt.
  std::optional<FxWord> asserted_tensor(uint32_t step, Status& status) const;
  Error failed_assertion(uint32_t step) const;
  Error interrupted_at(uint32_t step) const;
  // Returns the error that a kernel's error word describes.
  Error failed_kernel(uint32_t step, int64_t error) const;
  Error no_arena(int64_t bytes, std::optional<int64_t> free) const;
  Error error_at(uint32_t step, ErrorCode code, std::string message, std::string hint) const;
  // Returns an error at `step`. If `step` is FX_NONE, the error is at the node that makes the
  // storage.
  Error error_at(uint32_t step, uint32_t storage, ErrorCode code, std::string message, std::string hint) const;

  const FxPlan& plan_;
  const ScalarValues& values_;
  ExecuteOptions options_;
  const FxKernelTable& kernels_;
  std::vector<Bound> bound_;         // by step
  std::vector<int64_t> workspaces_;  // by step: bytes of the workspace
  PlanPlacement placement_;
  std::vector<void*> addresses_;              // by storage
  std::vector<std::vector<uint32_t>> taken_;  // by step: storages whose lifetimes begin with it
  int64_t counted_peak_ = 0;
};

// Returns true if a step needs a kernel, or computes a number on the host (FX_STEP_SCALAR). Returns
// false for waits, stream operations and assertions.
bool is_work(const FxStep& step);

}  // namespace fxopt
