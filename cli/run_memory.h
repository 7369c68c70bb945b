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

// The caching allocator's events in a run, beside those that `mem` predicts.
struct AllocatorComparison {
  int64_t predicted_allocated = 0, predicted_reserved = 0;  // peaks, bytes
  size_t events = 0;                                        // that are equal, from the first node on
  std::string first_difference;  // "%mm_4: 512 bytes were allocated, 1024 predicted"; empty: none
};

// `events`: of the run, from the first allocation on; `inputs`: how many of its allocations are inputs, which lie there before the first
// node; `workspaces`: what kernels take beside, by step of the plan, which `mem` does not know. Nothing for a module of several graphs, which is not predicted as one step here. As fast as replay_allocator().
std::optional<AllocatorComparison> compare_allocator(const Module& module, const FxPlan& plan,
                                                     const SymbolValues& symbols,
                                                     const std::vector<int64_t>& workspaces,
                                                     const AllocatorConfig& config,
                                                     const std::vector<AllocatorEvent>& events, size_t inputs);

}  // namespace fxopt
