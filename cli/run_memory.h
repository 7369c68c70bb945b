#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/config.h"
#include "ir/graph/module.h"
#include "runtime/abi/plan.h"

namespace fxopt {

// Compares the caching allocator's events in a run with those predicted by `mem`.
struct AllocatorComparison {
  int64_t predicted_allocated = 0, predicted_reserved = 0;  // peaks, bytes
  size_t events = 0;                                        // equal events, from the first node on
  std::string first_difference;  // "%mm_4: 512 bytes were allocated, 1024 predicted"; empty: none
};

// `events`: those of the run, from the first allocation on. `inputs`: the number of allocations for
// inputs, which exist before the first node. `workspaces`: additional memory of kernels, by step of
// the plan, unknown to `mem`. Returns nothing for a module of several graphs, which is not
// predicted as one step here. As fast as replay_allocator().
std::optional<AllocatorComparison> compare_allocator(const Module& module, const FxPlan& plan,
                                                     const SymbolValues& symbols,
                                                     const std::vector<int64_t>& workspaces,
                                                     const AllocatorConfig& config,
                                                     const std::vector<AllocatorEvent>& events, size_t inputs);

}  // namespace fxopt
