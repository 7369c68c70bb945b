#include "runtime/run/executor.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "core/text.h"
#include "ir/graph/types.h"
#include "runtime/cpu/isa.h"
#include "runtime/ops/rows.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

constexpr int64_t kAlignment = 512;

bool is_work(const FxStep& step) { return step.kind != FX_STEP_WAIT && step.kind != FX_STEP_STREAM; }

}  // namespace

HostBlock::HostBlock(int64_t bytes) {
  if (bytes <= 0) return;
  const int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(rounded))));
  if (data_ != nullptr) size_ = rounded;
}

void HostBlock::Free::operator()(std::byte* data) const { std::free(data); }

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

// Calls need no memory to be bound: a first binding without addresses tells the workspaces, which the placement needs.
Status Program::bind() {
  bound_.resize(plan_.num_steps);
  workspaces_.assign(plan_.num_steps, 0);
  const bool is_placed = !addresses_.empty();
  const AddressOf address = [&](uint32_t storage) { return is_placed ? addresses_[storage] : nullptr; };
  for (uint32_t i = 0; i < plan_.num_steps; ++i) {
    if (!is_work(plan_.steps[i])) continue;
    Result<BoundCall> call = bind_step(plan_, values_, i, address);
    if (!call.ok()) return call.error();
    const KernelRow* row = find_op_row(op_name(plan_, plan_.steps[i]));
    const FxKernel* kernel = find_kernel(*options_.kernels, row->body);
    if (kernel == nullptr)
      return error_at(i, ErrorCode::kUnsupportedOp, "no kernel of the name " + std::string(row->body), "");
    bound_[i] = {*std::move(call), kernel};
    int64_t error = FX_NO_ERROR;
    const FxCall numbers = bound_[i].call.call(nullptr, {}, &error);
    if (kernel->workspace != nullptr) workspaces_[i] = kernel->workspace(&numbers);
  }
  return ok_status();
}

Status Program::place_storages() {
  PlaceOptions place_options;
  // Whatever devices the file names, the step runs on this one: what it says of one device is placed like the rest.
  const std::vector<uint32_t> devices = devices_of(plan_);
  if (devices.size() > 1) {
    return Error{ErrorCode::kUnsupportedGraph,
                 "the step uses " + std::to_string(devices.size()) + " devices",
                 "a step on one device runs here, whichever it is",
                 {}};
  }
  place_options.device = devices.empty() ? FX_NONE : devices.front();
  place_options.workspace = [&](uint32_t step) { return workspaces_[step]; };
  Result<PlanPlacement> placed = place(plan_, place_options);
  if (!placed.ok()) return placed.error();
  placement_ = *std::move(placed);
  arena_ = HostBlock(placement_.arena_bytes);
  if (arena_.data() == nullptr && placement_.arena_bytes > 0) {
    return Error{ErrorCode::kOutOfMemory,
                 "the arena of " + std::to_string(placement_.arena_bytes) + " bytes could not be had",
                 "`fxopt mem` tells where the peak is",
                 {}};
  }
  addresses_.assign(plan_.num_storages, nullptr);
  for (uint64_t i = 0; i < plan_.num_storages; ++i) {
    const FxBlock& block = placement_.blocks[i];
    if (block.kind == FX_BLOCK_ARENA) addresses_[i] = arena_.data() + block.offset;
    if (block.kind == FX_BLOCK_GIVEN && i < options_.given.size()) addresses_[i] = options_.given[i];
  }
  return ok_status();
}

Result<std::unique_ptr<Program>> Program::prepare(const FxPlan& plan, const ScalarValues& values,
                                                  const ExecuteOptions& options) {
  std::unique_ptr<Program> program(new Program(plan, values, options));
  if (const Status status = program->bind(); !status.ok()) return status.error();
  if (const Status status = program->place_storages(); !status.ok()) return status.error();
  if (const Status status = program->bind(); !status.ok()) return status.error();
  return program;
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

Status Program::run_step(uint32_t step) {
  const Bound& bound = bound_[step];
  if (bound.kernel == nullptr) return ok_status();
  int64_t error = FX_NO_ERROR;
  const FxBlock& workspace = placement_.workspaces[step];
  void* scratch = workspace.kind == FX_BLOCK_ARENA ? arena_.data() + workspace.offset : nullptr;
  const FxCall call = bound.call.call(scratch, draw_of(plan_.steps[step]), &error);
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

Status Program::run() {
  for (uint32_t i = 0; i < plan_.num_steps; ++i) {
    if (options_.before) options_.before(i);
    if (const Status status = run_step(i); !status.ok()) return status;
    if (options_.after) options_.after(i);
  }
  return ok_status();
}

}  // namespace fxopt
