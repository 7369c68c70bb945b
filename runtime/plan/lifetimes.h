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

// Sets the bytes of each storage. Marks the storages whose sizes become known only while steps run.
// O(storages).
void set_sizes(const Graph& graph, const StorageMap& storages, ScalarBuilder& scalars, Plan& plan);

// Sets the lifetimes and roles that analyze_memory() reports. For each step, sets the list of
// storages that are freed after the step. The list has the order in which torch.fx code frees
// storages: the inputs that end at their node come first, then the values without users. If no step
// waits for a collective, the collective's storages are in use until the last step. `steps_before`
// has the number of steps before each place of the schedule, and before the end. `has_tensor` has
// one entry for each storage. O(nodes + words), plus analyze_memory().
void set_lifetimes(const Graph& graph, const StorageMap& storages, std::span<const uint32_t> steps_before,
                   const std::vector<bool>& has_tensor, Plan& plan);

// Flags steps whose storages are on two or more devices. O(words).
void mark_transfers(Plan& plan);

}  // namespace fxopt
