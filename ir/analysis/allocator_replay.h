#pragma once

#include <cstdint>
#include <optional>

#include "core/allocator/config.h"
#include "core/allocator/statistics.h"
#include "ir/analysis/memory.h"
#include "ir/analysis/storages.h"
#include "ir/graph/graph.h"

namespace fxopt {

// The largest value of one statistic, and the first node at which it is reached; no node when inputs alone reach it.
struct ReplayPeak {
  int64_t bytes = 0;
  NodeId node;
};

// What the framework's caching allocator makes of one device's storages. Kernels' workspaces and temporaries are not
// part of it: `requested` is the ideal peak but for where a node's outputs and inputs coexist.
struct AllocatorReplay {
  ReplayPeak requested;  // what was asked for
  ReplayPeak allocated;  // after rounding and splitting, as torch.cuda.max_memory_allocated
  ReplayPeak active;     // with what streams still hold
  ReplayPeak reserved;   // segments taken from the device, as torch.cuda.max_memory_reserved
  NodeId out_of_memory;  // where an allocation failed, with which the replay ended; invalid when none did
  bool fits_inputs = true;
  int64_t failed_bytes = 0;        // that allocation's
  AllocatorStatistics statistics;  // at the end
};

struct ReplayOptions {
  AllocatorConfig config;
  std::optional<int64_t> device_bytes;  // what the device has for the allocator; absent: no limit
};

// Runs the lifetimes of `memory` on one device through a CachingAllocator on a simulated device and one stream, in the
// order of eager execution: inputs and attributes first, in schedule order; then each node's outputs, depth first; then
// what ends at the node is freed as the code that torch.fx generates does, in the order of the node's inputs, what it
// made and nobody reads last. Storages of unknown size take nothing. O(n log n) for n storages.
AllocatorReplay replay_allocator(const Graph& graph, const StorageMap& storages, const MemoryReport& memory,
                                 StringId device, const ReplayOptions& options);

}  // namespace fxopt
