#include "runtime/plan/lifetimes.h"

#include <algorithm>
#include <utility>

#include "ir/memory/memory.h"
#include "ir/step/phases.h"
#include "runtime/plan/walk.h"

namespace fxopt {
namespace {

// If no step waits for a collective, extends the lifetimes of its storages to the last step.
void keep_unfinished(uint32_t last_step, Plan& plan) {
  std::vector<bool> is_awaited(plan.steps.size(), false);
  for (const FxStep& step : plan.steps) {
    if (step.kind == FX_STEP_WAIT && step.other != FX_NONE) is_awaited[step.other] = true;
  }
  std::vector<uint32_t> unfinished;
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    if (is_exchange(plan.steps[i]) && !is_awaited[i]) unfinished.push_back(i);
  }
  if (unfinished.empty()) return;
  const FxPlan& view = plan.view();
  for (const uint32_t i : unfinished) {
    for_each_storage(view, plan.steps[i], [&](uint32_t storage) {
      if (plan.storages[storage].first != FX_NONE) plan.storages[storage].last = last_step;
    });
  }
}

// Returns the position of each storage in the order in which lifetimes end (see set_lifetimes()).
std::vector<uint32_t> order_of_ends(const Graph& graph, const StorageMap& storages, const MemoryReport& memory,
                                    size_t num_storages) {
  std::vector<NodeId> schedule(graph.nodes().begin(), graph.nodes().end());
  std::vector<std::vector<BufferId>> ending(schedule.size());
  std::vector<uint32_t> end_of(num_storages, FX_NONE), order(num_storages, FX_NONE);
  for (const Lifetime& life : memory.lifetimes) {
    ending[life.last].push_back(life.buffer);
    end_of[life.buffer.index()] = life.last;
  }
  uint32_t next = 0;
  for (uint32_t place = 0; place < schedule.size(); ++place) {
    if (ending[place].empty()) continue;
    const auto end = [&](BufferId buffer) {
      if (!buffer.is_valid() || end_of[buffer.index()] != place || order[buffer.index()] != FX_NONE) return;
      order[buffer.index()] = next++;
    };
    graph.for_each_input(schedule[place], [&](NodeId input) {
      for (const BufferId buffer : storages.buffers(input)) end(buffer);
    });
    for (const BufferId buffer : ending[place]) end(buffer);
  }
  return order;
}

// Sets the list of storages that each step frees. `order` has a position for each storage, which
// sorts storages of the same step.
void add_frees(const std::vector<uint32_t>& order, Plan& plan) {
  std::vector<std::vector<uint32_t>> ending(plan.steps.size());
  for (uint32_t i = 0; i < plan.storages.size(); ++i) {
    const FxStorage& storage = plan.storages[i];
    const bool stays = (storage.flags & FX_STORAGE_RETURNED) != 0 || storage.last == FX_NONE;
    if (is_made(storage) && !stays) ending[storage.last].push_back(i);
  }
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    std::sort(ending[i].begin(), ending[i].end(),
              [&](uint32_t a, uint32_t b) { return std::pair(order[a], a) < std::pair(order[b], b); });
    plan.steps[i].frees = static_cast<uint32_t>(plan.indices.size());
    plan.steps[i].num_frees = static_cast<uint32_t>(ending[i].size());
    plan.indices.insert(plan.indices.end(), ending[i].begin(), ending[i].end());
  }
}

}  // namespace

void set_sizes(const Graph& graph, const StorageMap& storages, ScalarBuilder& scalars, Plan& plan) {
  for (uint32_t i = 0; i < plan.storages.size(); ++i) {
    FxStorage& storage = plan.storages[i];
    SizeSource source = size_source(graph, storages, BufferId(i));
    for (size_t hops = 0; source.kind == SizeKind::kLike && hops < plan.storages.size(); ++hops)
      source = size_source(graph, storages, source.like);
    storage.bytes = scalars.bytes_of(source);
    if (storage.bytes == kNoWord && source.kind == SizeKind::kNothing) storage.bytes = plan.number(0);
    if (storage.bytes == kNoWord) storage.flags |= FX_STORAGE_FOLLOWS;
    const bool is_late = storage.bytes == kNoWord || scalars.ready(storage.bytes) > 0;
    if (storage.source == FX_SOURCE_PLANNED && is_late) storage.source = FX_SOURCE_LATE;
  }
}

void set_lifetimes(const Graph& graph, const StorageMap& storages, std::span<const uint32_t> steps_before,
                   const std::vector<bool>& has_tensor, Plan& plan) {
  MemoryOptions options;
  options.derive_classes = true;
  const PhaseMap phases = resolve_phases(graph, storages);
  const MemoryReport memory = analyze_memory(graph, storages, options, &phases);
  const uint32_t last_step = plan.steps.empty() ? 0 : static_cast<uint32_t>(plan.steps.size() - 1);
  for (const Lifetime& life : memory.lifetimes) {
    FxStorage& storage = plan.storages[life.buffer.index()];
    storage.role = static_cast<uint8_t>(life.kind);
    storage.first = std::min(steps_before[life.first], last_step);
    const uint32_t before_end = steps_before[life.last + 1];
    storage.last = std::max(storage.first, before_end == 0 ? 0 : before_end - 1);
    if ((storage.flags & FX_STORAGE_RETURNED) != 0) storage.last = last_step;
    if (plan.steps.empty() || (is_made(storage) && !has_tensor[life.buffer.index()]))
      storage.first = storage.last = FX_NONE;
  }
  keep_unfinished(last_step, plan);
  add_frees(order_of_ends(graph, storages, memory, plan.storages.size()), plan);
}

void mark_transfers(Plan& plan) {
  const FxPlan& view = plan.view();
  for (FxStep& step : plan.steps) {
    uint32_t first = FX_NONE;
    bool differs = false;
    for_each_storage(view, step, [&](uint32_t storage) {
      const uint32_t device = plan.storages[storage].device;
      if (first == FX_NONE) first = device;
      differs |= device != FX_NONE && device != first;
    });
    if (differs) step.flags |= FX_STEP_TRANSFERS;
  }
}

}  // namespace fxopt
