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

// The result of comparing the events of the caching allocator in a run with the events that `mem`
// predicts.
struct AllocatorComparison {
  int64_t predicted_allocated = 0, predicted_reserved = 0;  // predicted peaks in bytes
  // Number of events before the first difference. The allocations for inputs are not counted.
  size_t events = 0;
  // Text such as "%mm_4: 512 bytes allocated, not 1024 bytes allocated as predicted". Empty if no
  // event differs.
  std::string first_difference;
};

// Compares the events of a run with the prediction of `mem`.
// - `events` are the events of the run, from the first allocation on.
// - `inputs` is the number of allocations for inputs. These allocations occur before the first
//   node.
// - `workspaces` is the additional memory of kernels, by step of the plan. This memory is added to
//   the prediction.
//
// Returns nothing if the module has several graphs, or if its graph does not use exactly one
// device. Takes as long as replay_allocator().
std::optional<AllocatorComparison> compare_allocator(const Module& module, const FxPlan& plan,
                                                     const SymbolValues& symbols,
                                                     const std::vector<int64_t>& workspaces,
                                                     const AllocatorConfig& config,
                                                     const std::vector<AllocatorEvent>& events, size_t inputs);

}  // namespace fxopt
