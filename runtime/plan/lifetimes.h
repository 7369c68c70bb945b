#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/scalars.h"

namespace fxopt {

// The last steps of lowering, once a plan has all its steps. Storage i is buffer i of `storages`.

// Sets the bytes of each storage, and which sizes are known late. O(storages).
void set_sizes(const Graph& graph, const StorageMap& storages, ScalarBuilder& scalars, Plan& plan);

// Sets lifetimes and roles as analyze_memory() reports them, and for each step the list of storages
// that end after it. The list follows the order in which torch.fx code frees them: the inputs of
// the node where they end, then values without users. A result that no step waits for is busy to
// the end. `steps_before`: for each place of the schedule, and the end, the steps before it.
// `has_tensor`: by storage. O(nodes + words), plus analyze_memory().
void set_lifetimes(const Graph& graph, const StorageMap& storages, std::span<const uint32_t> steps_before,
                   const std::vector<bool>& has_tensor, Plan& plan);

// Flags steps whose storages are on two or more devices. O(words).
void mark_transfers(Plan& plan);

}  // namespace fxopt
