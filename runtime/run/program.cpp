#include "runtime/run/program.h"

#include <algorithm>
#include <utility>

#include "core/hash.h"
#include "core/text.h"
#include "runtime/cpu/isa.h"
#include "runtime/ops/rows.h"
#include "runtime/plan/live.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/walk.h"
#include "runtime/run/compare.h"
#include "runtime/run/tensors.h"

namespace fxopt {

bool is_work(const FxStep& step) {
  return step.kind != FX_STEP_WAIT && step.kind != FX_STEP_STREAM && step.kind != FX_STEP_ASSERT;
}

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

Error Program::error_at(uint32_t step, uint32_t storage, ErrorCode code, std::string message, std::string hint) const {
  if (step != FX_NONE) return error_at(step, code, std::move(message), std::move(hint));
  Error error{code, std::move(message), std::move(hint), {}};
  const uint32_t node = plan_.storages[storage].node;
  if (node != FX_NONE) error.where.node = text_at(plan_, plan_.nodes[node].name);
  return error;
}

Status Program::bind_step_at(uint32_t step) {
  const bool is_placed = !addresses_.empty();
  const AddressOf address = [&](uint32_t storage) { return is_placed ? addresses_[storage] : nullptr; };
  Result<BoundCall> call = bind_step(plan_, values_, step, address, drawn_at(step));
  if (!call.ok()) return call.error();
  const KernelRow* row = find_op_row(op_name(plan_, plan_.steps[step]));
  const FxKernel* kernel = find_kernel(kernels_, row->body);
  if (kernel == nullptr)
    return error_at(step, ErrorCode::kUnsupportedOp, "no kernel has the name " + std::string(row->body), "");
  if ((kernel->computes >> call->compute & 1) == 0)
    return error_at(step, ErrorCode::kUnsupportedOp,
                    std::string(row->name) + " has no kernel for this call, because the call computes in integers", "");
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
    if (plan_.steps[i].kind == FX_STEP_SCALAR)
      return error_at(i, ErrorCode::kUnsupportedOp,
                      "it computes a number on the host while steps run, which this version does not support", "");
    if (!is_work(plan_.steps[i])) continue;
    if (Status status = bind_step_at(i); !status.ok()) return status;
  }
  return ok_status();
}

Status Program::place_storages(int64_t guard_bytes) {
  PlaceOptions place_options;
  const std::vector<uint32_t> devices = devices_of(plan_);
  place_options.device = devices.empty() ? FX_NONE : devices.front();
  place_options.every_device = true;
  place_options.workspace = [&](uint32_t step) { return workspaces_[step]; };
  place_options.guard_bytes = guard_bytes;
  place_options.values = &values_;
  Result<PlanPlacement> placed = place(plan_, place_options);
  if (!placed.ok()) return placed.error();
  placement_ = *std::move(placed);
  addresses_.assign(plan_.num_storages, nullptr);
  taken_.resize(plan_.num_steps);
  for (uint32_t i = 0; i < plan_.num_storages; ++i) {
    if (placement_.blocks[i].kind == FX_BLOCK_ARENA) taken_[plan_.storages[i].first].push_back(i);
  }
  return ok_status();
}

// This version supports neither constants of the file nor sizes that become known only while steps
// run.
Status Program::check_storage(uint32_t storage, uint32_t step) const {
  const auto refuse = [&](const std::string& missing) {
    return error_at(step, storage, ErrorCode::kUnsupportedOp,
                    "it uses " + missing + ", which this version does not support", "");
  };
  const FxBlock& block = placement_.blocks[storage];
  const bool has_bytes = values_.integer(plan_.storages[storage].bytes).value_or(1) > 0;
  const bool is_given = storage < options_.given.size() && options_.given[storage] != nullptr;
  if (block.kind == FX_BLOCK_LATE) return refuse("a size that is determined while steps run");
  if (block.kind == FX_BLOCK_GIVEN && !is_given && has_bytes) return refuse("a constant of the file");
  return ok_status();
}

Status Program::check_given() const {
  Status status = ok_status();
  for (uint32_t step = 0; step < plan_.num_steps; ++step) {
    for_each_storage(plan_, plan_.steps[step], [&](uint32_t storage) {
      if (status.ok()) status = check_storage(storage, step);
    });
    if (!status.ok()) return status;
  }
  for (uint64_t i = 0; i < plan_.num_outputs; ++i) {
    for_each_leaf(plan_, plan_.outputs[i].value, [&](FxWord word) {
      if_storage(plan_, word, [&](uint32_t storage) {
        if (status.ok()) status = check_storage(storage, FX_NONE);
      });
    });
  }
  return status;
}

// Returns true if the operand of an assertion is not 0.
bool Program::holds(const PlacedTensor& tensor, const void* storage) const {
  const std::vector<double> values = as_doubles(tensor.shape.dtype, copy_out(tensor, storage));
  return !values.empty() && values.front() != 0;
}

// Returns the seed and slot that select the random numbers of a call. A recorded seed and offset
// take precedence. Otherwise the slot is FxDraw::uid, with FxDraw::invocation above bit 39.
FxDrawState Program::draw_of(uint32_t step) const {
  FxDrawState state{options_.seed, 0};
  if (plan_.steps[step].draw == FX_NONE) return state;
  const FxDraw& draw = plan_.draws[plan_.steps[step].draw];
  if (draw.seed != UINT64_MAX) return {draw.seed, draw.offset == UINT64_MAX ? 0 : draw.offset};
  state.slot = (uint64_t{draw.invocation} << 40) ^ draw.uid;
  return state;
}

Error Program::failed_kernel(uint32_t step, int64_t error) const {
  const bool is_index = error % 256 == FX_ERROR_INDEX;
  return error_at(
      step, ErrorCode::kRunFailed,
      (is_index ? "an index is beyond its dimension, at element " : "a division of integers by zero, at element ") +
          std::to_string(error / 256),
      is_index ? "check the input that contains the indices" : "");
}

// The first argument of an assertion is its condition: a number, or a tensor of one element.
std::optional<FxWord> Program::asserted_tensor(uint32_t step, Status& status) const {
  const FxStep& row = plan_.steps[step];
  status = ok_status();
  if (row.num_args == 0) return std::nullopt;
  const FxWord word = plan_.words[row.args];
  if (const std::optional<ScalarValue> value = values_.value(word)) {
    if (!value->as_bool()) status = failed_assertion(step);
    return std::nullopt;
  }
  if (kind_of(word) == FX_WORD_TENSOR) {
    const std::optional<PlacedTensor> tensor = placed_tensor(plan_, values_, index_of(word));
    if (tensor.has_value() && tensor->shape.elements() == 1 && tensor->storage != FX_NONE) return word;
  }
  status = error_at(step, ErrorCode::kUnsupportedOp, "the value of its condition is unknown", "");
  return std::nullopt;
}

// The other string arguments of an assertion are error messages.
Error Program::failed_assertion(uint32_t step) const {
  const FxStep& row = plan_.steps[step];
  std::string message = "an assertion failed";
  for (uint32_t i = 1; i < row.num_args; ++i) {
    const FxWord text = plan_.words[row.args + i];
    if (kind_of(text) == FX_WORD_STRING) message += ": " + std::string(text_at(plan_, index_of(text)));
  }
  return error_at(step, ErrorCode::kRunFailed, message, "");
}

Error Program::interrupted_at(uint32_t step) const {
  return error_at(step, ErrorCode::kRunFailed,
                  "interrupted before step " + std::to_string(step) + " of " + std::to_string(plan_.num_steps), "");
}

Error Program::no_arena(int64_t bytes, std::optional<int64_t> free) const {
  return error_at(
      peak_of(plan_, values_, placement_.device).step, ErrorCode::kOutOfMemory,
      "the step needs " + std::to_string(bytes) + " bytes in addition to its inputs (the peak is at this node), but " +
          (free.has_value() ? std::to_string(*free) + " bytes are free" : std::string("they cannot be allocated")),
      "`fxopt mem` lists the storages; `fxopt opt --passes 'sac{policy=full},remat'` recomputes values instead of "
      "saving them");
}

Status Program::run_watched(const std::function<void(uint32_t)>& after) {
  const auto usual = std::exchange(options_.after, after);
  const auto watched = std::exchange(options_.is_watched, nullptr);
  const Status status = run();
  options_.after = usual;
  options_.is_watched = watched;
  return status;
}

std::optional<uint32_t> Program::first_difference(const std::function<void()>& restore) {
  std::vector<uint64_t> hashes;
  std::optional<uint32_t> found;
  for (int repeat = 0; repeat < 2 && !found.has_value(); ++repeat) {
    restore();
    if (!upload().ok()) break;
    size_t place = 0;
    const Status status = run_watched([&](uint32_t step) {
      for_each_result(plan_, values_, step, [&](uint32_t, const PlacedTensor& tensor) {
        if (found.has_value()) return;
        const std::vector<std::byte> bytes = copy_out(tensor, bytes_of(tensor.storage));
        const uint64_t hash = hash_bytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
        if (repeat == 0)
          hashes.push_back(hash);
        else if (hashes[place++] != hash)
          found = step;
      });
    });
    if (!status.ok()) break;
  }
  return found;
}

}  // namespace fxopt
