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

// The memory of storages that steps make.
enum class StorageMemory : uint8_t {
  kArena,      // at the offsets of a placement
  kAllocator,  // in blocks of the caching allocator, each from its making step to its last use
  kBlocks,     // likewise, in blocks of the system; only on the CPU
};

// Options for runs of one step.
struct ExecuteOptions {
  uint64_t seed = 0;
  StorageMemory memory = StorageMemory::kArena;
  AllocatorConfig allocator;  // settings of kAllocator
  // Host memory of each of the caller's storages (inputs, constants), by storage; null: it has
  // none.
  std::vector<void*> given;
  // Returns an external draw of a step: a mask of bools, row-major. Null: the step draws by its
  // slot. May be empty.
  std::function<const void*(uint32_t step)> drawn;
  // Queried before a step: true ends the run with an error. A device queries it before launching,
  // not between steps.
  std::function<bool()> is_interrupted;
  // Called after each step for which is_watched is true or empty, while values can be inspected.
  // May be empty.
  std::function<void(uint32_t step)> after;
  std::function<bool(uint32_t step)> is_watched;

  // On the CPU.
  const FxKernelTable* kernels = nullptr;
  ThreadPool* threads = nullptr;
  // A step of at most this many elements runs on one thread: it ends before another thread would
  // wake up.
  int64_t alone_elements = 16384;
  // In the arena: guards around every storage and workspace are checked after each step that uses
  // them, and unused bytes are signalling NaNs. A kernel that writes beyond its operand fails with
  // the node's name. A kernel that reads beyond it yields NaNs.
  bool debug_memory = false;
};

// A plan ready to run on one device: each step bound to a kernel, each storage to memory.
class Program {
 public:
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Runs all steps once. Errors: kRunFailed with the node for an index beyond its dimension, a
  // failed assertion, or an interruption; kOutOfMemory; kDeviceFailed.
  virtual Status run() = 0;
  // Copies the current contents of the caller's storages to the device. Already done before the
  // first run.
  virtual Status upload() { return ok_status(); }
  // Runs once, one step at a time, and returns times by step, zeros for steps without work. The
  // values are those of a run. `device_seconds` comes from the device's events; on the CPU from its
  // clock, and nothing is launched.
  virtual Result<std::vector<FxStepTime>> time_steps() = 0;
  // Returns the bytes of a storage on the host, or null if it has none; valid until the next call
  // of this object. A step's result is available until it is freed. If a device cannot be read,
  // returns zeros, and read_status() reports the error from then on.
  virtual const void* bytes_of(uint32_t storage) const = 0;
  virtual Status read_status() const { return ok_status(); }

  // Runs once and calls `after` after each step instead of the options' own callback.
  Status run_watched(const std::function<void(uint32_t step)>& after);
  // Runs twice and compares the results of each step. Returns the first step with different bits,
  // or nullopt. `restore` resets inputs before a run. Takes twice as long as run(), plus hashing.
  std::optional<uint32_t> first_difference(const std::function<void()>& restore);

  const FxPlan& plan() const { return plan_; }
  // Bytes of the kernels' workspaces, by step.
  const std::vector<int64_t>& workspaces() const { return workspaces_; }
  int64_t arena_bytes() const { return placement_.arena_bytes; }
  // The peak bytes of storages, workspaces and the caller's storages, counted as they are allocated
  // and freed; 0 in the arena.
  int64_t counted_peak() const { return counted_peak_; }
  // The most bytes that the caching allocator reserved; 0 without it.
  virtual int64_t reserved_peak() const { return 0; }

 protected:
  struct Bound {
    BoundCall call;
    const FxKernel* kernel = nullptr;  // null: no work
  };

  Program(const FxPlan& plan, const ScalarValues& values, const ExecuteOptions& options, const FxKernelTable& kernels)
      : plan_(plan), values_(values), options_(options), kernels_(kernels) {}

  // Binds all steps. Before addresses_ is filled, it determines the workspaces. Errors:
  // kUnsupportedOp for a step without a kernel here.
  Status bind();
  Status bind_step_at(uint32_t step);
  // Places storages and workspaces, with `guard_bytes` around each. Sets taken_.
  Status place_storages(int64_t guard_bytes);
  Status check_given() const;
  Status check_storage(uint32_t storage, uint32_t step) const;
  bool holds(const PlacedTensor& tensor, const void* storage) const;
  // The step's draw from a mask of --draws; null if it draws by its slot.
  virtual const void* drawn_at(uint32_t step) const { return options_.drawn ? options_.drawn(step) : nullptr; }
  FxDrawState draw_of(uint32_t step) const;
  bool is_interrupted() const { return options_.is_interrupted && options_.is_interrupted(); }
  bool is_watched(uint32_t step) const { return options_.after && (!options_.is_watched || options_.is_watched(step)); }

  // Returns the tensor that an assertion reads. Returns nullopt for a number, which is checked
  // here: `status`.
  std::optional<FxWord> asserted_tensor(uint32_t step, Status& status) const;
  Error failed_assertion(uint32_t step) const;
  Error interrupted_at(uint32_t step) const;
  // The error of a kernel's error word.
  Error failed_kernel(uint32_t step, int64_t error) const;
  Error no_arena(int64_t bytes, std::optional<int64_t> free) const;
  Error error_at(uint32_t step, ErrorCode code, std::string message, std::string hint) const;
  // Reports at `step`, or at the node that makes the storage if `step` is FX_NONE.
  Error error_at(uint32_t step, uint32_t storage, ErrorCode code, std::string message, std::string hint) const;

  const FxPlan& plan_;
  const ScalarValues& values_;
  ExecuteOptions options_;
  const FxKernelTable& kernels_;
  std::vector<Bound> bound_;         // by step
  std::vector<int64_t> workspaces_;  // bytes, by step
  PlanPlacement placement_;
  std::vector<void*> addresses_;              // by storage
  std::vector<std::vector<uint32_t>> taken_;  // storages that begin with a step
  int64_t counted_peak_ = 0;
};

// Returns true if a step computes something.
bool is_work(const FxStep& step);

}  // namespace fxopt
