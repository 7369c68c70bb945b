#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/scalars.h"

namespace fxopt {

// The last stage of lowering, which runs after all steps were added to the plan. Storage i of the
// plan is buffer i of `storages`.

// Sets the bytes of each storage. If no number of the plan can express the bytes, sets the flag
// FX_STORAGE_FOLLOWS instead. Sets the source of a storage to FX_SOURCE_LATE if both conditions
// hold:
// - A step of the plan makes the storage.
// - The size of the storage becomes known only while steps run.
// O(storages).
void set_sizes(const Graph& graph, const StorageMap& storages, ScalarBuilder& scalars, Plan& plan);

// Sets the lifetimes and roles that analyze_memory() reports. For each step, sets the list of
// storages that are freed after the step. The list has the order in which torch.fx code frees
// storages: first the inputs whose last user is the step's node, then the node's results without
// users. If no step waits for a collective, the collective's storages are in use until the last
// step. Entry i of `steps_before` is the number of steps before node i of the schedule, and the
// last entry is the number of all steps. Entry i of `has_tensor` is true if a tensor of the plan
// uses storage i. O(nodes + entries of Plan::words), plus analyze_memory().
void set_lifetimes(const Graph& graph, const StorageMap& storages, std::span<const uint32_t> steps_before,
                   const std::vector<bool>& has_tensor, Plan& plan);

// Sets FX_STEP_TRANSFERS in steps whose storages are on two or more devices. O(entries of
// Plan::words).
void mark_transfers(Plan& plan);

}  // namespace fxopt
