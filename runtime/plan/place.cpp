#include "runtime/plan/place.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/plan/plan.h"
#include "runtime/plan/walk.h"

namespace fxopt {
namespace {

class Placer {
 public:
  Placer(const FxPlan& plan, const PlaceOptions& options)
      : plan_(plan),
        options_(options),
        values_(options.values != nullptr
                    ? *options.values
                    : ScalarValues::by_symbols(plan, options.symbols ? options.symbols : no_symbol_value)),
        ends_(plan.num_storages) {}

  Result<PlanPlacement> run() {
    placement_.device = options_.device;
    placement_.stream_count = options_.streams;
    placement_.kernels.resize(plan_.num_steps);
    placement_.workspaces.resize(plan_.num_steps, {0, 0, FX_BLOCK_NONE, 0});
    for (uint64_t i = 0; i < plan_.num_storages; ++i) ends_[i] = plan_.storages[i].last;
    set_exchange_ends();
    set_streams();
    if (options_.streams > 1) add_events();
    if (const Status status = set_blocks(); !status.ok()) return status.error();
    return std::move(placement_);
  }

 private:
  uint32_t end() const { return plan_.num_steps == 0 ? 0 : static_cast<uint32_t>(plan_.num_steps - 1); }

  bool is_here(uint32_t device) const { return options_.every_device || device == options_.device; }

  void set_exchange_ends() {
    exchange_ends_.resize(plan_.num_steps, FX_NONE);
    for (uint32_t i = 0; i < plan_.num_steps; ++i) {
      const FxStep& step = plan_.steps[i];
      if (step.kind == FX_STEP_WAIT && step.other != FX_NONE) exchange_ends_[step.other] = i;
    }
    for (uint32_t& last : exchange_ends_) last = last == FX_NONE ? end() : last;
  }

  void set_streams() {
    placement_.streams.resize(plan_.num_steps);
    for (uint64_t i = 0; i < plan_.num_steps && options_.streams > 1; ++i)
      placement_.streams[i] = is_exchange(plan_.steps[i]) ? 1 : 0;
  }

  // Adds events between the two streams, and extends lifetimes in ends_. `awaited` is the last step
  // of stream 1 that stream 0 has awaited, plus one. `awaited_by_other` is the last step of stream
  // 0 that stream 1 has awaited, plus one.
  void add_events() {
    // by storage: the last step of stream 1 that uses the storage, plus one
    std::vector<uint32_t> used_by_other(plan_.num_storages, 0);
    uint32_t awaited = 0, awaited_by_other = 0, last_here = 0;
    for (uint32_t s = 0; s < plan_.num_steps; ++s) {
      const FxStep& step = plan_.steps[s];
      if (placement_.streams[s] == 1) {
        if (last_here > awaited_by_other) placement_.events.push_back({last_here - 1, s});
        awaited_by_other = last_here;
        for_each_storage(plan_, step, [&](uint32_t storage) { used_by_other[storage] = s + 1; });
        continue;
      }
      uint32_t needed = 0;
      for_each_storage(plan_, step, [&](uint32_t storage) { needed = std::max(needed, used_by_other[storage]); });
      if (step.other != FX_NONE) needed = std::max(needed, step.other + 1);
      for (uint32_t i = 0; i < step.num_after; ++i) {
        const uint32_t before = plan_.indices[step.after + i];
        if (placement_.streams[before] == 1) needed = std::max(needed, before + 1);
      }
      if (needed > awaited) {
        placement_.events.push_back({needed - 1, s});
        awaited = needed;
        syncs_.emplace_back(needed, s);
      }
      last_here = s + 1;
    }
    for (uint64_t i = 0; i < plan_.num_storages; ++i) {
      if (used_by_other[i] > 0 && ends_[i] != FX_NONE) ends_[i] = std::max(ends_[i], awaited_at(used_by_other[i]));
    }
  }

  // Returns the first step of stream 0 that starts only after all steps of stream 1 below `count`
  // have ended. Returns the last step of the plan if there is no such step.
  uint32_t awaited_at(uint32_t count) const {
    const auto sync = std::lower_bound(syncs_.begin(), syncs_.end(), std::pair(count, uint32_t{0}));
    return sync == syncs_.end() ? end() : sync->second;
  }

  Status set_blocks() {
    std::vector<ArenaItem> items;
    std::vector<FxBlock*> placed;
    placement_.blocks.resize(plan_.num_storages, {0, 0, FX_BLOCK_NONE, 0});
    for (uint64_t i = 0; i < plan_.num_storages; ++i) {
      const FxStorage& storage = plan_.storages[i];
      if (!is_here(storage.device)) continue;
      FxBlock& block = placement_.blocks[i];
      if (storage.source != FX_SOURCE_PLANNED) {
        block.kind = storage.source == FX_SOURCE_LATE ? FX_BLOCK_LATE : FX_BLOCK_GIVEN;
        continue;
      }
      const std::optional<int64_t> bytes = values_.integer(storage.bytes);
      if (!bytes.has_value() || *bytes < 0) return unknown_size(storage);
      block.bytes = *bytes;
      if (*bytes == 0 || storage.first == FX_NONE) continue;
      block.kind = FX_BLOCK_ARENA;
      items.push_back({storage.first, ends_[i], *bytes + 2 * options_.guard_bytes});
      placed.push_back(&block);
    }
    for (uint32_t i = 0; i < plan_.num_steps && options_.workspace; ++i) {
      const int64_t bytes = is_here(device_of(plan_, plan_.steps[i])) ? options_.workspace(i) : 0;
      if (bytes <= 0) continue;
      placement_.workspaces[i] = {0, bytes, FX_BLOCK_ARENA, 0};
      items.push_back({i, workspace_end(i), bytes + 2 * options_.guard_bytes});
      placed.push_back(&placement_.workspaces[i]);
    }
    ArenaOptions arena;
    arena.effort = options_.arena_effort;
    const std::optional<ArenaPlan> found = plan_arena(items, arena);
    if (!found.has_value()) {
      return Error{ErrorCode::kUnknownSize, "the storages and workspaces need 2^62 bytes or more", "", {}};
    }
    for (size_t k = 0; k < placed.size(); ++k) placed[k]->offset = found->offsets[k] + options_.guard_bytes;
    placement_.arena_bytes = found->bytes;
    placement_.lower_bound = found->lower_bound;
    placement_.method = found->method;
    return ok_status();
  }

  uint32_t workspace_end(uint32_t step) const {
    if (!is_exchange(plan_.steps[step])) return step;
    uint32_t last = exchange_ends_[step];
    if (options_.streams > 1) last = std::max(last, awaited_at(step + 1));
    return last;
  }

  Error unknown_size(const FxStorage& storage) const {
    Error error{ErrorCode::kUnknownSize,
                "a symbol in the size of its storage has no value, and the file has no hint",
                "give a value with --symbol NAME=VALUE",
                {}};
    error.where.node = text_at(plan_, plan_.nodes[storage.node].name);
    return error;
  }

  const FxPlan& plan_;
  const PlaceOptions& options_;
  ScalarValues values_;
  std::vector<uint32_t> ends_;  // by storage
  // by step: the last step that waits for the collective or message that the step starts, or the
  // last step of the plan
  std::vector<uint32_t> exchange_ends_;
  // pairs (n, s): step s starts only after all steps of stream 1 below n have ended
  std::vector<std::pair<uint32_t, uint32_t>> syncs_;
  PlanPlacement placement_;
};

}  // namespace

FxPlacement PlanPlacement::view() const {
  FxPlacement view{};
  view.version = FX_PLAN_VERSION;
  view.size = sizeof(FxPlacement);
  view.device = device;
  view.stream_count = stream_count;
  view.arena_bytes = arena_bytes;
  view.lower_bound = lower_bound;
  view.blocks = blocks.data();
  view.num_blocks = blocks.size();
  view.streams = streams.data();
  view.num_streams = streams.size();
  view.events = events.data();
  view.num_events = events.size();
  view.workspaces = workspaces.data();
  view.num_workspaces = workspaces.size();
  view.kernels = kernels.data();
  view.num_kernels = kernels.size();
  return view;
}

Result<PlanPlacement> place(const FxPlan& plan, const PlaceOptions& options) { return Placer(plan, options).run(); }

std::vector<uint32_t> devices_of(const FxPlan& plan) {
  std::vector<uint32_t> devices;
  for (uint64_t i = 0; i < plan.num_storages; ++i) {
    const uint32_t device = plan.storages[i].device;
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  }
  return devices;
}

}  // namespace fxopt
