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

// Where storages lie that steps make.
enum class StorageMemory : uint8_t {
  kArena,      // at the offsets of a placement
  kAllocator,  // in blocks of the caching allocator, each from the step that makes it to its last use
  kBlocks,     // likewise, in blocks of the system; on the CPU alone
};

// What a run of one step is given.
struct ExecuteOptions {
  uint64_t seed = 0;
  StorageMemory memory = StorageMemory::kArena;
  AllocatorConfig allocator;  // of kAllocator
  // Memory of each storage that is the caller's (inputs, constants), by storage, on the host; null: it has none.
  std::vector<void*> given;
  // What a step draws, from elsewhere: a mask of bools, row-major; null: it draws by its slot. May be empty.
  std::function<const void*(uint32_t step)> drawn;
  // Asked before a step: true ends the run with an error. A device asks before it is given steps, not between them.
  std::function<bool()> is_interrupted;
  // Called behind each step for which is_watched is true, or is empty: values are there for whoever wants to see them. May be empty.
  std::function<void(uint32_t step)> after;
  std::function<bool(uint32_t step)> is_watched;

  // On the CPU.
  const FxKernelTable* kernels = nullptr;
  ThreadPool* threads = nullptr;
  // A step of so many elements is one thread's: another would wake up when it has ended.
  int64_t alone_elements = 16384;
  // In the arena: guards around every storage and workspace are checked behind each step that uses them, and bytes that nobody has are
  // signalling NaNs. A kernel that writes beyond its operand is an error with the node; one that reads what is not there gives NaNs.
  bool debug_memory = false;
};

// A plan that is ready to run on one device: each step bound to a kernel, each storage to memory.
class Program {
 public:
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Runs all steps once. Errors: kRunFailed with the node for an index beyond its dimension, a failed assertion, an interruption;
  // kOutOfMemory; kDeviceFailed.
  virtual Status run() = 0;
  // Gives the device what the caller's storages hold now. Before the first run it has been done.
  virtual Status upload() { return ok_status(); }
  // Runs once, each step alone: by step, zeros where it does nothing. The values are those of a run. `device_seconds` is by the device's
  // events; on the CPU by its clock, and nothing is launched.
  virtual Result<std::vector<FxStepTime>> time_steps() = 0;
  // The bytes of a storage on the host, null where it has none: good until the next call of this object. What a step made is there until it
  // was freed. Where a device cannot be read, zeros, and read_status() says it from then on.
  virtual const void* bytes_of(uint32_t storage) const = 0;
  virtual Status read_status() const { return ok_status(); }

  // Runs once, and calls `after` behind each step in place of the options' own.
  Status run_watched(const std::function<void(uint32_t step)>& after);
  // Runs twice more and compares what each step gives: the first that gives other bits. Nothing where none does. `restore` puts
  // inputs back before a run. Takes twice as long as run(), and hashing.
  std::optional<uint32_t> first_difference(const std::function<void()>& restore);

  const FxPlan& plan() const { return plan_; }
  // Bytes of the kernels' workspaces, by step.
  const std::vector<int64_t>& workspaces() const { return workspaces_; }
  int64_t arena_bytes() const { return placement_.arena_bytes; }
  // The most bytes of storages, workspaces and the caller's storages at once, as they were counted when taken and given back; 0 in the
  // arena.
  int64_t counted_peak() const { return counted_peak_; }
  // The most bytes that the caching allocator held; 0 without it.
  virtual int64_t reserved_peak() const { return 0; }

 protected:
  struct Bound {
    BoundCall call;
    const FxKernel* kernel = nullptr;  // null: nothing to do
  };

  Program(const FxPlan& plan, const ScalarValues& values, const ExecuteOptions& options, const FxKernelTable& kernels)
      : plan_(plan), values_(values), options_(options), kernels_(kernels) {}

  // Binds all steps. Before addresses_ are there it tells the workspaces. Errors: kUnsupportedOp for a step that has no kernel here.
  Status bind();
  Status bind_step_at(uint32_t step);
  // Places storages and workspaces; `guard_bytes` around each. Sets taken_.
  Status place_storages(int64_t guard_bytes);
  Status check_given() const;
  Status check_storage(uint32_t storage, uint32_t step) const;
  bool holds(const PlacedTensor& tensor, const void* storage) const;
  // What the step says, by a mask of --draws or by its slot.
  virtual const void* drawn_at(uint32_t step) const { return options_.drawn ? options_.drawn(step) : nullptr; }
  FxDrawState draw_of(uint32_t step) const;
  bool is_interrupted() const { return options_.is_interrupted && options_.is_interrupted(); }
  bool is_watched(uint32_t step) const { return options_.after && (!options_.is_watched || options_.is_watched(step)); }

  // The tensor that an assertion reads; nothing where it reads a number, which is checked here: `status`.
  std::optional<FxWord> asserted_tensor(uint32_t step, Status& status) const;
  Error failed_assertion(uint32_t step) const;
  Error interrupted_at(uint32_t step) const;
  // What an error word says.
  Error failed_kernel(uint32_t step, int64_t error) const;
  Error no_arena(int64_t bytes, std::optional<int64_t> free) const;
  Error error_at(uint32_t step, ErrorCode code, std::string message, std::string hint) const;
  // At the node that makes the storage, where no step is: FX_NONE.
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

// Whether a step computes something.
bool is_work(const FxStep& step);

}  // namespace fxopt
