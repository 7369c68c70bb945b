#include "runtime/run/executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/hash.h"
#include "core/text.h"
#include "ir/graph/types.h"
#include "runtime/cpu/isa.h"
#include "runtime/ops/rows.h"
#include "runtime/plan/live.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/walk.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

constexpr int64_t kGuard = 512;

bool is_work(const FxStep& step) {
  return step.kind != FX_STEP_WAIT && step.kind != FX_STEP_STREAM && step.kind != FX_STEP_ASSERT;
}

}  // namespace

Error Program::error_at(uint32_t step, ErrorCode code, std::string message, std::string hint) const {
  Error error{code, std::move(message), std::move(hint), {}};
  const uint32_t node = plan_.steps[step].node;
  if (node == FX_NONE) return error;
  const FxNode& row = plan_.nodes[node];
  error.where.graph = text_at(plan_, plan_.name);
  error.where.node = text_at(plan_, row.name);
  error.where.module_path = text_at(plan_, row.module);
  if (row.file != FX_NONE) error.where.source = std::string(text_at(plan_, row.file)) + ":" + std::to_string(row.line);
  return error;
}

// Without addresses, a binding tells the workspaces, which the placement needs.
Status Program::bind_step_at(uint32_t step) {
  const bool is_placed = !addresses_.empty();
  const AddressOf address = [&](uint32_t storage) { return is_placed ? addresses_[storage] : nullptr; };
  const void* drawn = options_.drawn ? options_.drawn(step) : nullptr;
  Result<BoundCall> call = bind_step(plan_, values_, step, address, drawn);
  if (!call.ok()) return call.error();
  const KernelRow* row = find_op_row(op_name(plan_, plan_.steps[step]));
  const FxKernel* kernel = find_kernel(*options_.kernels, row->body);
  if (kernel == nullptr)
    return error_at(step, ErrorCode::kUnsupportedOp, "no kernel of the name " + std::string(row->body), "");
  if ((kernel->computes >> call->compute & 1) == 0)
    return error_at(step, ErrorCode::kUnsupportedOp,
                    std::string(row->name) + " has no kernel for this call: it computes in real numbers", "");
  bound_[step] = {*std::move(call), kernel};
  int64_t error = FX_NO_ERROR;
  const FxCall numbers = bound_[step].call.call(nullptr, {}, &error);
  if (kernel->workspace != nullptr) workspaces_[step] = kernel->workspace(&numbers);
  return ok_status();
}

Status Program::bind() {
  bound_.resize(plan_.num_steps);
  workspaces_.assign(plan_.num_steps, 0);
  for (uint32_t i = 0; i < plan_.num_steps; ++i) {
    const uint8_t kind = plan_.steps[i].kind;
    if (kind == FX_STEP_SCALAR)
      return error_at(i, ErrorCode::kUnsupportedOp,
                      "it computes a number on the host while steps run, which this version does not", "");
    if (!is_work(plan_.steps[i])) continue;
    if (Status status = bind_step_at(i); !status.ok()) return status;
  }
  return ok_status();
}

Status Program::take_arena() {
  arena_ = HostBlock(placement_.arena_bytes);
  if (arena_.data() != nullptr || placement_.arena_bytes == 0) return ok_status();
  const std::optional<int64_t> free = free_host_memory();
  return error_at(
      peak_of(plan_, values_, placement_.device).step, ErrorCode::kOutOfMemory,
      "the step needs " + std::to_string(placement_.arena_bytes) +
          " bytes besides its inputs, most of them here, and " +
          (free.has_value() ? std::to_string(*free) + " are free" : std::string("they could not be had")),
      "`fxopt mem` tells what they are; `fxopt opt --passes 'sac{policy=full},remat'` recomputes instead of keeping");
}

Status Program::place_storages() {
  PlaceOptions place_options;
  const std::vector<uint32_t> devices = devices_of(plan_);
  place_options.device = devices.empty() ? FX_NONE : devices.front();
  place_options.every_device = true;
  place_options.workspace = [&](uint32_t step) { return workspaces_[step]; };
  if (options_.debug_memory) place_options.guard_bytes = kGuard;
  Result<PlanPlacement> placed = place(plan_, place_options);
  if (!placed.ok()) return placed.error();
  placement_ = *std::move(placed);
  const bool in_arena = options_.memory == HostMemory::kArena;
  if (in_arena) {
    if (Status status = take_arena(); !status.ok()) return status;
  } else if (options_.memory == HostMemory::kAllocator) {
    allocator_ = std::make_unique<CachingHostAllocator>(options_.allocator);
  } else {
    allocator_ = std::make_unique<SystemAllocator>();
  }
  addresses_.assign(plan_.num_storages, nullptr);
  taken_.resize(plan_.num_steps);
  for (uint32_t i = 0; i < plan_.num_storages; ++i) {
    const FxBlock& block = placement_.blocks[i];
    if (block.kind == FX_BLOCK_GIVEN && i < options_.given.size()) addresses_[i] = options_.given[i];
    if (block.kind != FX_BLOCK_ARENA) continue;
    taken_[plan_.storages[i].first].push_back(i);
    if (in_arena) addresses_[i] = arena_.data() + block.offset;
  }
  return ok_status();
}

Result<std::unique_ptr<Program>> Program::prepare(const FxPlan& plan, const ScalarValues& values,
                                                  const ExecuteOptions& options) {
  std::unique_ptr<Program> program(new Program(plan, values, options));
  if (const Status status = program->bind(); !status.ok()) return status.error();
  if (const Status status = program->place_storages(); !status.ok()) return status.error();
  if (const Status status = program->check_given(); !status.ok()) return status.error();
  if (const Status status = program->bind(); !status.ok()) return status.error();
  return program;
}

// Constants of the file are not loaded by this version; sizes that steps find out are not waited for.
Status Program::check_given() const {
  for (uint32_t step = 0; step < plan_.num_steps; ++step) {
    if (!is_work(plan_.steps[step])) continue;
    std::string missing;
    for_each_storage(plan_, plan_.steps[step], [&](uint32_t storage) {
      const FxBlock& block = placement_.blocks[storage];
      const bool has_bytes = values_.integer(plan_.storages[storage].bytes).value_or(1) > 0;
      if (block.kind == FX_BLOCK_LATE) missing = "a size that is found while steps run";
      if (block.kind == FX_BLOCK_GIVEN && addresses_[storage] == nullptr && has_bytes)
        missing = "a constant of the file";
    });
    if (!missing.empty())
      return error_at(step, ErrorCode::kUnsupportedOp, "it uses " + missing + ", which this version does not run", "");
  }
  return ok_status();
}

// A slot of 64 bits: the uid of the node as first recorded, the run of its graph above it. What the file records comes first.
FxDrawState Program::draw_of(const FxStep& step) const {
  FxDrawState state{options_.seed, 0};
  if (step.draw == FX_NONE) return state;
  const FxDraw& draw = plan_.draws[step.draw];
  if (draw.seed != UINT64_MAX) return {draw.seed, draw.offset == UINT64_MAX ? 0 : draw.offset};
  state.slot = (uint64_t{draw.invocation} << 40) ^ draw.uid;
  return state;
}

Status Program::run_kernel(uint32_t step) {
  const Bound& bound = bound_[step];
  int64_t error = FX_NO_ERROR;
  const FxBlock& block = placement_.workspaces[step];
  void* workspace = block.kind == FX_BLOCK_ARENA ? arena_.data() + block.offset : nullptr;
  if (allocator_ != nullptr) workspace = workspace_;
  const FxCall call = bound.call.call(workspace, draw_of(plan_.steps[step]), &error);
  for (uint32_t phase = 0; phase < bound.kernel->phases; ++phase) {
    options_.threads->run(bound.kernel->units(&call, phase),
                          [&](int64_t first, int64_t end) { bound.kernel->run(&call, phase, first, end); });
    if (error == FX_NO_ERROR) continue;
    const bool is_index = error % 256 == FX_ERROR_INDEX;
    return error_at(
        step, ErrorCode::kRunFailed,
        (is_index ? "an index is beyond its dimension, at element " : "a division of integers by zero, at element ") +
            std::to_string(error / 256),
        is_index ? "look at the input that the indices come from" : "");
  }
  return ok_status();
}

// The first argument must be true: a number, or a tensor of one element. The next that is a text says what failed.
Status Program::check_assertion(uint32_t step) const {
  const FxStep& row = plan_.steps[step];
  if (row.num_args == 0) return ok_status();
  const FxWord word = plan_.words[row.args];
  std::optional<bool> holds;
  if (const std::optional<ScalarValue> value = values_.value(word)) {
    holds = value->as_bool();
  } else if (kind_of(word) == FX_WORD_TENSOR) {
    const std::optional<PlacedTensor> tensor = placed_tensor(plan_, values_, index_of(word));
    if (tensor.has_value() && tensor->shape.elements() == 1 && tensor->storage != FX_NONE) {
      const std::vector<std::byte> bytes = copy_out(*tensor, addresses_[tensor->storage]);
      holds = std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; });
    }
  }
  if (!holds.has_value()) return error_at(step, ErrorCode::kUnsupportedOp, "what it asserts is not known here", "");
  if (*holds) return ok_status();
  std::string message = "an assertion failed";
  for (uint32_t i = 1; i < row.num_args; ++i) {
    const FxWord text = plan_.words[row.args + i];
    if (kind_of(text) == FX_WORD_STRING) message += ": " + std::string(text_at(plan_, index_of(text)));
  }
  return error_at(step, ErrorCode::kRunFailed, message, "");
}

Status Program::run_step(uint32_t step) {
  if (plan_.steps[step].kind == FX_STEP_ASSERT) return check_assertion(step);

  if (allocator_ != nullptr) {
    if (Status status = take_blocks(step); !status.ok()) return status;
  }
  if (bound_[step].kernel != nullptr) {
    if (Status status = run_kernel(step); !status.ok()) return status;
  }
  if (options_.debug_memory) {
    if (Status status = check_guards(step); !status.ok()) return status;
  }
  return ok_status();
}

// -- blocks

Status Program::take_blocks(uint32_t step) {
  for (const uint32_t storage : taken_[step]) {
    const int64_t bytes = placement_.blocks[storage].bytes;
    allocator_->give(addresses_[storage]);  // an output of the run before
    addresses_[storage] = allocator_->take(bytes);
    counted_ += bytes;
    if (addresses_[storage] != nullptr || bytes == 0) continue;
    return error_at(
        step, ErrorCode::kOutOfMemory,
        std::to_string(bytes) + " bytes could not be had, with " + std::to_string(counted_ - bytes) + " in use",
        "`fxopt mem` tells where the peak is");
  }
  workspace_ = allocator_->take(workspaces_[step]);
  if (workspaces_[step] > 0 && workspace_ == nullptr)
    return error_at(step, ErrorCode::kOutOfMemory,
                    std::to_string(workspaces_[step]) + " bytes of workspace could not be had", "");
  counted_peak_ = std::max(counted_peak_, counted_ + workspaces_[step]);
  return is_work(plan_.steps[step]) ? bind_step_at(step) : ok_status();
}

void Program::give_blocks(uint32_t step) {
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

constexpr uint64_t kPoison = 0x7ff4dead7fa4dead;  // signalling NaNs as float64, float32 and bfloat16
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

void Program::write_guards(uint32_t step) {
  const auto write = [&](const FxBlock& block) {
    if (block.kind != FX_BLOCK_ARENA) return;
    fill_words(arena_.data() + block.offset - kGuard, kGuard, kCanary);
    fill_words(arena_.data() + block.offset + block.bytes, kGuard, kCanary);
  };
  write(placement_.workspaces[step]);
  for (const uint32_t storage : taken_[step]) write(placement_.blocks[storage]);
}

void Program::poison_arena() { fill_words(arena_.data(), arena_.size(), kPoison); }

// Guards are written before the step that uses a block first, since blocks share bytes over time.
Status Program::check_guards(uint32_t step) const {
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

void Program::poison_frees(uint32_t step) {
  const FxStep& row = plan_.steps[step];
  const auto poison = [&](const FxBlock& block) {
    if (block.kind == FX_BLOCK_ARENA) fill_words(arena_.data() + block.offset, block.bytes, kPoison);
  };
  for (uint32_t i = 0; i < row.num_frees; ++i) poison(placement_.blocks[plan_.indices[row.frees + i]]);
  poison(placement_.workspaces[step]);
}

std::optional<uint32_t> Program::first_difference(const std::function<void()>& restore) {
  std::vector<uint64_t> hashes;
  std::optional<uint32_t> found;
  const auto usual = std::exchange(options_.after, nullptr);
  for (int repeat = 0; repeat < 2 && !found.has_value(); ++repeat) {
    restore();
    size_t place = 0;
    options_.after = [&](uint32_t step) {
      const FxStep& row = plan_.steps[step];
      for (uint32_t i = 0; i < row.num_results && !found.has_value(); ++i) {
        const FxWord word = plan_.words[row.results + i];
        if (kind_of(word) != FX_WORD_TENSOR) continue;
        const std::optional<PlacedTensor> tensor = placed_tensor(plan_, values_, index_of(word));
        if (!tensor.has_value() || tensor->storage == FX_NONE) continue;
        const std::vector<std::byte> bytes = copy_out(*tensor, addresses_[tensor->storage]);
        const uint64_t hash = hash_bytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
        if (repeat == 0)
          hashes.push_back(hash);
        else if (hashes[place++] != hash)
          found = step;
      }
    };
    if (!run().ok()) break;
  }
  options_.after = usual;
  return found;
}

Status Program::run() {
  if (options_.debug_memory) poison_arena();
  counted_ = counted_peak_ = 0;
  for (uint64_t i = 0; i < plan_.num_storages && allocator_ != nullptr; ++i) {
    if (placement_.blocks[i].kind == FX_BLOCK_GIVEN) counted_ += values_.integer(plan_.storages[i].bytes).value_or(0);
  }
  for (uint32_t i = 0; i < plan_.num_steps; ++i) {
    if (options_.is_interrupted && options_.is_interrupted()) {
      return error_at(i, ErrorCode::kRunFailed,
                      "interrupted before step " + std::to_string(i) + " of " + std::to_string(plan_.num_steps), "");
    }
    if (options_.before) options_.before(i);
    if (options_.debug_memory) write_guards(i);
    if (const Status status = run_step(i); !status.ok()) return status;
    if (options_.after) options_.after(i);
    if (allocator_ != nullptr) give_blocks(i);
    if (options_.debug_memory) poison_frees(i);
  }
  return ok_status();
}

}  // namespace fxopt
