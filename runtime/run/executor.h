#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/abi/kernel.h"
#include "runtime/abi/plan.h"
#include "runtime/cpu/threads.h"
#include "runtime/ops/bind.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/place.h"

namespace fxopt {

// Memory of one block, aligned to 512 bytes; empty where there is none left.
class HostBlock {
 public:
  HostBlock() = default;
  explicit HostBlock(int64_t bytes);
  std::byte* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  int64_t size_ = 0;
};

// What a run of one step on the CPU is given.
struct ExecuteOptions {
  const FxKernelTable* kernels = nullptr;
  ThreadPool* threads = nullptr;
  uint64_t seed = 0;
  // Memory of each storage that is the caller's (inputs, constants), by storage; null: it has none.
  std::vector<void*> given;
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

  // Memory of a storage, while the program is there; null: it has none. What a step made is there until it was freed.
  void* address_of(uint32_t storage) const { return addresses_[storage]; }
  int64_t arena_bytes() const { return placement_.arena_bytes; }
  const FxPlan& plan() const { return plan_; }

 private:
  Program(const FxPlan& plan, const ScalarValues& values, const ExecuteOptions& options)
      : plan_(plan), values_(values), options_(options) {}
  Status bind();
  Status place_storages();
  Status run_step(uint32_t step);
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
  std::vector<void*> addresses_;  // by storage
};

}  // namespace fxopt
