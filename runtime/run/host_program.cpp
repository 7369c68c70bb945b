#include "runtime/run/host_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/stopwatch.h"
#include "core/text.h"
#include "runtime/ops/kernels/tile.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/walk.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

constexpr int64_t kGuard = 512;

int64_t num_elements(const BoundCall& call) {
  int64_t count = 0;
  for (const FxView& view : call.views) count += kernels::num_elements(view);
  return count;
}

}  // namespace

Status HostProgram::take_arena() {
  arena_ = HostBlock(placement_.arena_bytes);
  if (arena_.data() == nullptr && placement_.arena_bytes > 0)
    return no_arena(placement_.arena_bytes, free_host_memory());
  for (uint32_t i = 0; i < plan_.num_storages; ++i) {
    const FxBlock& block = placement_.blocks[i];
    if (block.kind == FX_BLOCK_ARENA) addresses_[i] = arena_.data() + block.offset;
  }
  return ok_status();
}

Status HostProgram::take_memory() {
  for (uint32_t i = 0; i < plan_.num_storages && i < options_.given.size(); ++i) {
    if (placement_.blocks[i].kind == FX_BLOCK_GIVEN) addresses_[i] = options_.given[i];
  }
  if (options_.memory == StorageMemory::kArena) return take_arena();
  allocator_ = std::make_unique<SystemAllocator>();
  if (options_.memory == StorageMemory::kAllocator)
    allocator_ = std::make_unique<CachingHostAllocator>(options_.allocator);
  return ok_status();
}

Result<std::unique_ptr<HostProgram>> HostProgram::prepare(const FxPlan& plan, const ScalarValues& values,
                                                          const ExecuteOptions& options) {
  std::unique_ptr<HostProgram> program(new HostProgram(plan, values, options));
  if (const Status status = program->bind(); !status.ok()) return status.error();
  if (const Status status = program->place_storages(options.debug_memory ? kGuard : 0); !status.ok())
    return status.error();
  if (const Status status = program->check_given(); !status.ok()) return status.error();
  if (const Status status = program->take_memory(); !status.ok()) return status.error();
  if (const Status status = program->bind(); !status.ok()) return status.error();
  return program;
}

Status HostProgram::run_kernel(uint32_t step) {
  const Bound& bound = bound_[step];
  int64_t error = FX_NO_ERROR;
  const FxBlock& block = placement_.workspaces[step];
  void* workspace = block.kind == FX_BLOCK_ARENA ? arena_.data() + block.offset : nullptr;
  if (allocator_ != nullptr) workspace = workspace_;
  const FxCall call = bound.call.call(workspace, draw_of(step), &error);
  const bool is_small = num_elements(bound.call) <= options_.alone_elements;
  for (uint32_t phase = 0; phase < bound.kernel->phases; ++phase) {
    const int64_t units = bound.kernel->units(&call, phase);
    const auto run_units = [&](int64_t first, int64_t end) { bound.kernel->run(&call, phase, first, end); };
    if (is_small) {
      run_units(0, units);
    } else {
      options_.threads->run(units, run_units);
    }
    if (error != FX_NO_ERROR) return failed_kernel(step, error);
  }
  return ok_status();
}

Status HostProgram::check_assertion(uint32_t step) const {
  Status status = ok_status();
  const std::optional<FxWord> word = asserted_tensor(step, status);
  if (!word.has_value()) return status;
  const std::optional<PlacedTensor> tensor = placed_tensor(plan_, values_, index_of(*word));
  return holds(*tensor, addresses_[tensor->storage]) ? ok_status() : Status(failed_assertion(step));
}

Status HostProgram::run_step(uint32_t step) {
  if (plan_.steps[step].kind == FX_STEP_ASSERT) return check_assertion(step);

  if (allocator_ != nullptr) {
    if (Status status = take_blocks(step); !status.ok()) return status;
  }
  if (bound_[step].kernel != nullptr) {
    Stopwatch watch;
    if (Status status = run_kernel(step); !status.ok()) return status;
    if (times_ != nullptr) (*times_)[step].device_seconds = watch.lap();
  }
  if (options_.debug_memory) {
    if (Status status = check_guards(step); !status.ok()) return status;
  }
  return ok_status();
}

// -- blocks

Status HostProgram::take_blocks(uint32_t step) {
  for (const uint32_t storage : taken_[step]) {
    const int64_t bytes = placement_.blocks[storage].bytes;
    allocator_->give(addresses_[storage]);  // frees an output of the previous run
    addresses_[storage] = allocator_->take(bytes);
    counted_ += bytes;
    if (addresses_[storage] != nullptr || bytes == 0) continue;
    return error_at(step, ErrorCode::kOutOfMemory,
                    "cannot allocate " + std::to_string(bytes) + " bytes: " + std::to_string(counted_ - bytes) +
                        " bytes are in use",
                    "`fxopt mem` reports where the peak is");
  }
  workspace_ = allocator_->take(workspaces_[step]);
  if (workspaces_[step] > 0 && workspace_ == nullptr)
    return error_at(step, ErrorCode::kOutOfMemory,
                    "cannot allocate " + std::to_string(workspaces_[step]) + " bytes of workspace", "");
  counted_peak_ = std::max(counted_peak_, counted_ + workspaces_[step]);
  return is_work(plan_.steps[step]) ? bind_step_at(step) : ok_status();
}

void HostProgram::give_blocks(uint32_t step) {
  allocator_->give(std::exchange(workspace_, nullptr));
  const FxStep& row = plan_.steps[step];
  for (uint32_t i = 0; i < row.num_frees; ++i) {
    const uint32_t storage = plan_.indices[row.frees + i];
    if (placement_.blocks[storage].kind != FX_BLOCK_ARENA) continue;
    counted_ -= placement_.blocks[storage].bytes;
    allocator_->give(std::exchange(addresses_[storage], nullptr));
  }
}

// -- guards

namespace {

// These bits are a signalling NaN in float64, float32 and bfloat16.
constexpr uint64_t kPoison = 0x7ff4dead7fa4dead;
constexpr uint64_t kCanary = 0x5afec0de5afec0de;

void fill_words(std::byte* from, int64_t bytes, uint64_t word) {
  for (int64_t i = 0; i < bytes; i += 8)
    std::memcpy(from + i, &word, static_cast<size_t>(std::min<int64_t>(8, bytes - i)));
}

bool has_words(const std::byte* from, int64_t bytes, uint64_t word) {
  for (int64_t i = 0; i < bytes; i += 8) {
    if (std::memcmp(from + i, &word, static_cast<size_t>(std::min<int64_t>(8, bytes - i))) != 0) return false;
  }
  return true;
}

}  // namespace

void HostProgram::write_guards(uint32_t step) {
  const auto write = [&](const FxBlock& block) {
    if (block.kind != FX_BLOCK_ARENA) return;
    fill_words(arena_.data() + block.offset - kGuard, kGuard, kCanary);
    fill_words(arena_.data() + block.offset + block.bytes, kGuard, kCanary);
  };
  write(placement_.workspaces[step]);
  for (const uint32_t storage : taken_[step]) write(placement_.blocks[storage]);
}

// write_guards() writes the guards of a block before its first step, because earlier blocks may use
// the same bytes.
Status HostProgram::check_guards(uint32_t step) const {
  const auto is_whole = [&](const FxBlock& block) {
    if (block.kind != FX_BLOCK_ARENA) return true;
    const std::byte* data = arena_.data() + block.offset;
    return has_words(data - kGuard, kGuard, kCanary) && has_words(data + block.bytes, kGuard, kCanary);
  };
  std::string broken;
  if (!is_whole(placement_.workspaces[step])) broken = "its workspace";
  for_each_storage(plan_, plan_.steps[step], [&](uint32_t storage) {
    if (!is_whole(placement_.blocks[storage])) broken = "storage " + std::to_string(storage);
  });
  if (broken.empty()) return ok_status();
  return error_at(step, ErrorCode::kInternal, "its kernel wrote beyond " + broken,
                  "this is a mistake in fxopt; please report it with this file");
}

void HostProgram::poison_frees(uint32_t step) {
  const FxStep& row = plan_.steps[step];
  const auto poison = [&](const FxBlock& block) {
    if (block.kind == FX_BLOCK_ARENA) fill_words(arena_.data() + block.offset, block.bytes, kPoison);
  };
  for (uint32_t i = 0; i < row.num_frees; ++i) poison(placement_.blocks[plan_.indices[row.frees + i]]);
  poison(placement_.workspaces[step]);
}

Result<std::vector<FxStepTime>> HostProgram::time_steps() {
  std::vector<FxStepTime> times(plan_.num_steps);
  times_ = &times;
  const Status status = run();
  times_ = nullptr;
  if (!status.ok()) return status.error();
  return times;
}

Status HostProgram::run() {
  if (options_.debug_memory) fill_words(arena_.data(), arena_.size(), kPoison);
  counted_ = counted_peak_ = 0;
  for (uint64_t i = 0; i < plan_.num_storages && allocator_ != nullptr; ++i) {
    if (placement_.blocks[i].kind == FX_BLOCK_GIVEN) counted_ += values_.integer(plan_.storages[i].bytes).value_or(0);
  }
  for (uint32_t i = 0; i < plan_.num_steps; ++i) {
    if (is_interrupted()) return interrupted_at(i);
    if (options_.debug_memory) write_guards(i);
    if (const Status status = run_step(i); !status.ok()) return status;
    if (is_watched(i)) options_.after(i);
    if (allocator_ != nullptr) give_blocks(i);
    if (options_.debug_memory) poison_frees(i);
  }
  return ok_status();
}

}  // namespace fxopt
