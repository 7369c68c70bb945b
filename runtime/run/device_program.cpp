#include "runtime/run/device_program.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "ir/values/values.h"
#include "runtime/cpu/isa.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/streams.h"
#include "runtime/run/host_memory.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

constexpr int64_t kDeviceAlignment = 512;
constexpr int64_t aligned(int64_t bytes) {
  return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

}  // namespace

Result<std::unique_ptr<DeviceProgram>> DeviceProgram::prepare(const FxPlan& plan, const ScalarValues& values,
                                                              const ExecuteOptions& options, PluginDevice& device,
                                                              const DeviceOptions& device_options) {
  std::unique_ptr<DeviceProgram> program(new DeviceProgram(plan, values, options, device, device_options));
  try {
    if (const Status status = program->prepare_all(); !status.ok()) return status.error();
  } catch (const DeviceFailure& failure) {
    return failure.error;
  }
  return program;
}

Status DeviceProgram::prepare_all() {
  if (Status status = bind(); !status.ok()) return status;
  if (Status status = place_storages(0); !status.ok()) return status;
  if (Status status = check_given(); !status.ok()) return status;
  const int64_t free = device_.free_bytes();
  if (Status status = take_memory(); !status.ok()) return status;
  if (Status status = bind(); !status.ok()) return status;
  if (Status status = bind_assertions(); !status.ok()) return status;
  if (Status status = build(); !status.ok()) return status;
  measured_bytes_ = free - device_.free_bytes();
  return upload();
}

DeviceProgram::~DeviceProgram() {
  const FxPlugin& calls = device_.calls();
  if (program_ != nullptr) calls.drop(program_);
  for (const uint64_t block : blocks_) calls.free(device_.handle(), block);
  if (allocator_ == nullptr) return;
  try {
    for (const uint64_t block : allocated_) allocator_->free(block);
    allocator_->empty_cache();
  } catch (const DeviceFailure&) {
    // The device has failed already, and the error was reported.
  }
}

Status DeviceProgram::of_call(int32_t status) const {
  return status == FX_DEVICE_OK ? ok_status() : Status(device_.error(status));
}

int64_t DeviceProgram::bytes_of_storage(uint32_t storage) const {
  return values_.integer(plan_.storages[storage].bytes).value_or(0);
}

// -- memory

Result<uint64_t> DeviceProgram::allocate(int64_t bytes, const char* what) {
  uint64_t address = 0;
  const int32_t status = device_.calls().allocate(device_.handle(), bytes, &address);
  if (status == FX_DEVICE_NO_MEMORY) {
    return Error{ErrorCode::kOutOfMemory,
                 std::string(what) + " " + (what[0] == 't' ? "need " : "needs ") + std::to_string(bytes) +
                     " bytes, but only " + std::to_string(device_.free_bytes()) + " bytes are free on the device",
                 "`fxopt mem` reports a step's memory",
                 {}};
  }
  if (status != FX_DEVICE_OK) return device_.error(status);
  blocks_.push_back(address);
  return address;
}

Status DeviceProgram::take_memory() {
  workspaces_at_.assign(plan_.num_steps, nullptr);
  if (options_.memory == StorageMemory::kAllocator) {
    allocator_ = std::make_unique<CachingAllocator>(device_, options_.allocator);
    if (device_options_.observe_allocator) allocator_->observe(device_options_.observe_allocator);
  }
  if (Status status = take_given(); !status.ok()) return status;
  if (Status status = take_masks(); !status.ok()) return status;
  if (allocator_ != nullptr) return walk_allocator();
  if (Status status = take_arena(); !status.ok()) return status;
  if (device_options_.streams > 1) spread_over_streams(plan_, device_options_.streams, placement_);
  return ok_status();
}

// Allocates device memory for the caller's storages, such as parameters, before the step begins.
Status DeviceProgram::take_given() {
  std::vector<uint32_t> given;
  int64_t all = 0;
  for (uint32_t i = 0; i < plan_.num_storages && i < options_.given.size(); ++i) {
    if (placement_.blocks[i].kind != FX_BLOCK_GIVEN || options_.given[i] == nullptr) continue;
    given.push_back(i);
    given_bytes_ += bytes_of_storage(i);
    num_given_ += bytes_of_storage(i) > 0 ? 1 : 0;
    all += aligned(bytes_of_storage(i));
  }
  counted_ = given_bytes_;
  if (allocator_ != nullptr) {
    for (const uint32_t storage : given) {
      if (Status status = take_from_allocator(FX_NONE, storage, bytes_of_storage(storage), addresses_[storage]);
          !status.ok())
        return status;
    }
    return ok_status();
  }
  if (all == 0) return ok_status();
  const Result<uint64_t> block = allocate(all, "the step's inputs");
  if (!block.ok()) return block.error();
  uint64_t at = *block;
  for (const uint32_t storage : given) {
    addresses_[storage] = pointer_of(at);
    at += static_cast<uint64_t>(aligned(bytes_of_storage(storage)));
  }
  return ok_status();
}

Status DeviceProgram::take_arena() {
  if (placement_.arena_bytes == 0) return ok_status();
  uint64_t arena = 0;
  const int32_t status = device_.calls().allocate(device_.handle(), placement_.arena_bytes, &arena);
  if (status == FX_DEVICE_NO_MEMORY) return no_arena(placement_.arena_bytes, device_.free_bytes());
  if (status != FX_DEVICE_OK) return device_.error(status);
  blocks_.push_back(arena);
  const auto address_of = [&](const FxBlock& block) { return pointer_of(arena + static_cast<uint64_t>(block.offset)); };
  for (uint32_t i = 0; i < plan_.num_storages; ++i) {
    if (placement_.blocks[i].kind == FX_BLOCK_ARENA) addresses_[i] = address_of(placement_.blocks[i]);
  }
  for (uint32_t i = 0; i < plan_.num_steps; ++i) {
    if (placement_.workspaces[i].kind == FX_BLOCK_ARENA) workspaces_at_[i] = address_of(placement_.workspaces[i]);
  }
  return ok_status();
}

// Copies the masks of --draws to the device. The masks replace random draws of steps.
Status DeviceProgram::take_masks() {
  std::vector<void*> masks(plan_.num_steps, nullptr);
  for (uint32_t i = 0; i < plan_.num_steps; ++i) {
    const void* mask = Program::drawn_at(i);
    if (mask == nullptr || plan_.steps[i].num_results < 2) continue;
    const std::optional<PlacedTensor> tensor =
        placed_tensor(plan_, values_, index_of(plan_.words[plan_.steps[i].results + 1]));
    if (!tensor.has_value() || tensor->shape.elements() == 0) continue;
    const Result<uint64_t> block = allocate(tensor->shape.elements(), "a mask");
    if (!block.ok()) return block.error();
    if (Status status = of_call(device_.calls().write(device_.handle(), *block, mask, tensor->shape.elements()));
        !status.ok())
      return status;
    masks[i] = pointer_of(*block);
  }
  masks_ = std::move(masks);
  return ok_status();
}

const void* DeviceProgram::drawn_at(uint32_t step) const {
  return masks_.empty() ? Program::drawn_at(step) : masks_[step];
}

Status DeviceProgram::take_from_allocator(uint32_t step, uint32_t storage, int64_t bytes, void*& address) {
  address = nullptr;
  const std::optional<uint64_t> found = allocator_->allocate(bytes, 0);
  if (found.has_value()) {
    address = pointer_of(*found);
    if (*found != 0) allocated_.insert(*found);
    return ok_status();
  }
  const std::string message =
      "cannot allocate " + std::to_string(bytes) + " bytes from the caching allocator: " + std::to_string(counted_) +
      " bytes of storages are in use, and " + std::to_string(device_.free_bytes()) + " bytes are free on the device";
  return error_at(step, storage, ErrorCode::kOutOfMemory, message, "`fxopt mem` reports where the peak is");
}

// Returns the error if the allocator frees a segment during walk_allocator(). The training step
// later runs at the addresses from walk_allocator(), so every segment must stay allocated.
Error DeviceProgram::gave_back(uint32_t step) const {
  return error_at(step, ErrorCode::kOutOfMemory,
                  "the caching allocator would return cached memory to the device, which a run does not allow: " +
                      std::to_string(counted_) + " bytes are in use, and " + std::to_string(device_.free_bytes()) +
                      " bytes are free on the device",
                  "`--memory arena` needs less memory; `fxopt mem` reports where the peak is");
}

Status DeviceProgram::walk_allocator() {
  const auto give = [&](void* address) {
    if (address == nullptr) return;
    allocator_->free(address_of(address));
    allocated_.erase(address_of(address));
  };
  for (uint32_t step = 0; step < plan_.num_steps; ++step) {
    for (const uint32_t storage : taken_[step]) {
      const int64_t bytes = placement_.blocks[storage].bytes;
      counted_ += bytes;
      if (Status status = take_from_allocator(step, storage, bytes, addresses_[storage]); !status.ok()) return status;
    }
    if (Status status = take_from_allocator(step, FX_NONE, workspaces_[step], workspaces_at_[step]); !status.ok())
      return status;
    counted_peak_ = std::max(counted_peak_, counted_ + workspaces_[step]);
    if (allocator_->statistics().num_device_free > 0) return gave_back(step);
    give(workspaces_at_[step]);
    const FxStep& row = plan_.steps[step];
    for (uint32_t i = 0; i < row.num_frees; ++i) {
      const uint32_t storage = plan_.indices[row.frees + i];
      if (placement_.blocks[storage].kind != FX_BLOCK_ARENA) continue;
      counted_ -= placement_.blocks[storage].bytes;
      give(addresses_[storage]);
    }
  }
  return ok_status();
}

int64_t DeviceProgram::reserved_peak() const {
  if (allocator_ == nullptr) return 0;
  return allocator_->statistics().reserved_bytes[static_cast<size_t>(PoolKind::kAll)].peak;
}

int64_t DeviceProgram::allocated_peak() const {
  if (allocator_ == nullptr) return 0;
  return allocator_->statistics().allocated_bytes[static_cast<size_t>(PoolKind::kAll)].peak;
}

// -- the program

// Later steps may reuse the memory of an assertion's operand. A kernel therefore copies the operand
// to a bool, which the host checks after the steps.
Status DeviceProgram::bind_assertions() {
  for (uint32_t step = 0; step < plan_.num_steps; ++step) {
    if (plan_.steps[step].kind != FX_STEP_ASSERT) continue;
    Status status = ok_status();
    const std::optional<FxWord> word = asserted_tensor(step, status);
    if (!status.ok()) return status;
    if (!word.has_value()) continue;
    const std::optional<PlacedTensor> tensor = placed_tensor(plan_, values_, index_of(*word));
    Assertion assertion{step, {}};
    FxView to{}, from{};
    to.dtype = static_cast<uint8_t>(DType::kBool);
    from.dtype = static_cast<uint8_t>(tensor->shape.dtype);
    from.data = static_cast<std::byte*>(addresses_[tensor->storage]) + tensor->offset;
    assertion.call.views = {to, from};
    assertion.call.num_results = 1;
    assertion.call.compute = is_floating(tensor->shape.dtype) ? FX_COMPUTE_DOUBLE : FX_COMPUTE_INT64;
    assertions_.push_back(std::move(assertion));
  }
  if (assertions_.empty()) return ok_status();
  const Result<uint64_t> slots = allocate(static_cast<int64_t>(assertions_.size()), "the results of assertions");
  if (!slots.ok()) return slots.error();
  slots_ = *slots;
  for (size_t i = 0; i < assertions_.size(); ++i) assertions_[i].call.views[0].data = pointer_of(slots_ + i);
  return ok_status();
}

void DeviceProgram::add_launches(uint32_t step, const FxCall& call, const FxKernel& kernel,
                                 std::vector<FxLaunch>& launches) const {
  for (uint32_t phase = 0; phase < kernel.phases; ++phase) {
    if (kernel.units(&call, phase) == 0) continue;
    launches.push_back({kernel.name, &call, step, phase});
  }
}

Status DeviceProgram::build() {
  std::vector<FxCall> calls(plan_.num_steps + assertions_.size());
  std::vector<FxLaunch> launches;
  size_t next_assertion = 0;
  const FxKernel* copy = find_kernel(kernels_, "copy");
  for (uint32_t step = 0; step < plan_.num_steps; ++step) {
    if (next_assertion < assertions_.size() && assertions_[next_assertion].step == step) {
      FxCall& call = calls[plan_.num_steps + next_assertion];
      call = assertions_[next_assertion++].call.call(nullptr, {}, nullptr);
      add_launches(step, call, *copy, launches);
    }
    if (bound_[step].kernel == nullptr) continue;
    calls[step] = bound_[step].call.call(workspaces_at_[step], draw_of(step), nullptr);
    add_launches(step, calls[step], *bound_[step].kernel, launches);
  }
  std::vector<FxWait> waits;
  for (const FxEvent& event : placement_.events) waits.push_back({event.recorded_by, event.awaited_by});
  FxProgramSource source{};
  source.size = sizeof source;
  source.num_steps = static_cast<uint32_t>(plan_.num_steps);
  source.num_streams = placement_.stream_count;
  source.num_launches = static_cast<uint32_t>(launches.size());
  source.launches = launches.data();
  source.streams = placement_.streams.data();
  source.waits = waits.data();
  source.num_waits = waits.size();
  return of_call(device_.calls().prepare(device_.handle(), &source, &program_));
}

Status DeviceProgram::upload() {
  for (uint32_t i = 0; i < plan_.num_storages && i < options_.given.size(); ++i) {
    if (placement_.blocks[i].kind != FX_BLOCK_GIVEN || addresses_[i] == nullptr) continue;
    if (Status status = of_call(
            device_.calls().write(device_.handle(), address_of(addresses_[i]), options_.given[i], bytes_of_storage(i)));
        !status.ok())
      return status;
  }
  return ok_status();
}

const void* DeviceProgram::bytes_of(uint32_t storage) const {
  if (addresses_[storage] == nullptr) return nullptr;
  const bool is_given = placement_.blocks[storage].kind == FX_BLOCK_GIVEN;
  const int64_t bytes = is_given ? bytes_of_storage(storage) : placement_.blocks[storage].bytes;
  read_.assign(static_cast<size_t>(bytes), std::byte{0});
  const Status status =
      of_call(device_.calls().read(device_.handle(), read_.data(), address_of(addresses_[storage]), bytes));
  if (!status.ok() && read_status_.ok()) read_status_ = status;
  return read_.data();
}

Status DeviceProgram::run() {
  device_seconds_ = launch_seconds_ = 0;
  uint32_t first = 0;
  for (uint32_t step = 0; step < plan_.num_steps; ++step) {
    if (!is_watched(step) && step + 1 < plan_.num_steps) continue;
    if (is_interrupted()) return interrupted_at(first);
    if (Status status = run_range(first, step + 1, nullptr); !status.ok()) return status;
    first = step + 1;
    if (is_watched(step)) options_.after(step);
  }
  return read_status_;
}

Status DeviceProgram::run_range(uint32_t first, uint32_t end, FxStepTime* times) {
  FxRunResult result{};
  result.size = sizeof result;
  if (Status status = of_call(device_.calls().run(program_, first, end, times, &result)); !status.ok()) return status;
  device_seconds_ += result.device_seconds;
  launch_seconds_ += result.launch_seconds;
  const bool has_failed = result.failed_step != UINT32_MAX;
  if (Status status = check_assertions(first, has_failed ? result.failed_step : end); !status.ok()) return status;
  return has_failed ? Status(failed_kernel(result.failed_step, result.error)) : ok_status();
}

Status DeviceProgram::check_assertions(uint32_t first, uint32_t end) {
  if (assertions_.empty()) return ok_status();
  std::vector<char> found(assertions_.size());
  if (Status status =
          of_call(device_.calls().read(device_.handle(), found.data(), slots_, static_cast<int64_t>(found.size())));
      !status.ok())
    return status;
  for (size_t i = 0; i < assertions_.size(); ++i) {
    const uint32_t step = assertions_[i].step;
    if (step >= first && step < end && found[i] == 0) return failed_assertion(step);
  }
  return ok_status();
}

Result<std::vector<FxStepTime>> DeviceProgram::time_steps() {
  std::vector<FxStepTime> times(plan_.num_steps);
  if (is_interrupted()) return interrupted_at(0);
  device_seconds_ = launch_seconds_ = 0;
  if (const Status status = run_range(0, static_cast<uint32_t>(plan_.num_steps), times.data()); !status.ok())
    return status.error();
  return times;
}

}  // namespace fxopt
