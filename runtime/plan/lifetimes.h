#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/scalars.h"

namespace fxopt {

// What is left to say of a plan's storages once all its steps are there. Storage i is buffer i of `storages`.

// Bytes of each storage, and which are late. O(storages).
void set_sizes(const Graph& graph, const StorageMap& storages, ScalarBuilder& scalars, Plan& plan);

// Lifetimes and roles, as analyze_memory() has them, and lists of what ends behind each step, in the order in which the code of
// torch.fx frees it: that of the inputs of the node where it ends, then what nobody reads; what no step waits for is busy to the end. `steps_before`: for each place
// of the schedule, and one more, the steps before it. `has_tensor`: by storage. O(nodes + words), and what analyze_memory() takes.
void set_lifetimes(const Graph& graph, const StorageMap& storages, std::span<const uint32_t> steps_before,
                   const std::vector<bool>& has_tensor, Plan& plan);

// Flags steps whose storages are on two devices or more. O(words).
void mark_transfers(Plan& plan);

}  // namespace fxopt
