#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/abi/kernel.h"
#include "runtime/abi/plan.h"
#include "runtime/cpu/threads.h"
#include "runtime/ops/bind.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/place.h"
#include "runtime/run/host_memory.h"

namespace fxopt {

// Where storages lie that steps make.
enum class HostMemory : uint8_t {
  kArena,      // at the offsets of a placement
  kAllocator,  // in blocks of the caching allocator, each from the step that makes it to its last use
  kBlocks,     // likewise, in blocks of the system
};

// What a run of one step on the CPU is given.
struct ExecuteOptions {
  const FxKernelTable* kernels = nullptr;
  ThreadPool* threads = nullptr;
  uint64_t seed = 0;
  HostMemory memory = HostMemory::kArena;
  AllocatorConfig allocator;  // of kAllocator
  // In the arena: guards around every storage and workspace are checked behind each step that uses them, and bytes that nobody has are
  // signalling NaNs. A kernel that writes beyond its operand is an error with the node; one that reads what is not there gives NaNs.
  bool debug_memory = false;
  // Memory of each storage that is the caller's (inputs, constants), by storage; null: it has none.
  std::vector<void*> given;
  // What a step draws, from elsewhere: a mask of bools, row-major; null: it draws by its slot. May be empty.
  std::function<const void*(uint32_t step)> drawn;
  // Asked before each step: true ends the run with an error.
  std::function<bool()> is_interrupted;
  // Called before and after each step: values are there for whoever wants to see them. May be empty.
  std::function<void(uint32_t step)> before, after;
};

// A plan that is ready to run: each step bound to a kernel, each storage to memory.
class Program {
 public:
  // Errors: kUnsupportedOp for a step that has no kernel here; kOutOfMemory; kInternal where a storage of the caller is missing.
  static Result<std::unique_ptr<Program>> prepare(const FxPlan& plan, const ScalarValues& values,
                                                  const ExecuteOptions& options);

  // Runs all steps once. Errors: kRunFailed with the node for an index beyond its dimension.
  Status run();

  // Runs twice more and compares what each step gives: the first that gives other bits. Nothing where none does. `restore` puts
  // inputs back before a run. Takes twice as long as run(), and hashing.
  std::optional<uint32_t> first_difference(const std::function<void()>& restore);

  // Memory of a storage, while the program is there; null: it has none. What a step made is there until it was freed.
  void* address_of(uint32_t storage) const { return addresses_[storage]; }
  int64_t arena_bytes() const { return placement_.arena_bytes; }
  // The most bytes of blocks and of the caller's storages at once, as they were counted when taken and given back; 0 in the arena.
  int64_t counted_peak() const { return counted_peak_; }
  // The most bytes that the caching allocator held; 0 without it.
  int64_t reserved_peak() const { return allocator_ == nullptr ? 0 : allocator_->reserved_peak(); }
  const FxPlan& plan() const { return plan_; }

 private:
  Program(const FxPlan& plan, const ScalarValues& values, const ExecuteOptions& options)
      : plan_(plan), values_(values), options_(options) {}
  Status bind_step_at(uint32_t step);
  Status bind();
  Status place_storages();
  Status take_arena();
  Status check_given() const;
  Status run_step(uint32_t step);
  Status run_kernel(uint32_t step);
  Status check_assertion(uint32_t step) const;
  Status take_blocks(uint32_t step);
  void give_blocks(uint32_t step);
  void poison_arena();
  void write_guards(uint32_t step);
  Status check_guards(uint32_t step) const;
  void poison_frees(uint32_t step);
  Error error_at(uint32_t step, ErrorCode code, std::string message, std::string hint) const;
  FxDrawState draw_of(const FxStep& step) const;

  struct Bound {
    BoundCall call;
    const FxKernel* kernel = nullptr;  // null: nothing to do
  };

  const FxPlan& plan_;
  const ScalarValues& values_;
  ExecuteOptions options_;
  std::vector<Bound> bound_;         // by step
  std::vector<int64_t> workspaces_;  // bytes, by step
  PlanPlacement placement_;
  HostBlock arena_;
  std::vector<void*> addresses_;              // by storage
  std::vector<std::vector<uint32_t>> taken_;  // storages that begin with a step
  // Where storages are taken one by one.
  std::unique_ptr<HostAllocator> allocator_;
  void* workspace_ = nullptr;
  int64_t counted_ = 0, counted_peak_ = 0;
};

}  // namespace fxopt
