#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/config.h"
#include "core/allocator/statistics.h"
#include "ir/memory/trace.h"

namespace fxopt {

// The largest value of one statistic, and the first node that reaches it. The node is invalid if
// the initial blocks reach it.
struct ReplayPeak {
  int64_t bytes = 0;
  NodeId node;
};

// The behaviour of the framework's caching allocator on one device's trace.
struct AllocatorReplay {
  ReplayPeak requested;  // bytes that were asked for
  ReplayPeak allocated;  // after rounding and splitting, like torch.cuda.max_memory_allocated
  ReplayPeak active;     // including blocks that streams still hold
  ReplayPeak reserved;   // segments of the device, like torch.cuda.max_memory_reserved
  // The failed allocation, which ended the replay; invalid if none failed.
  NodeId out_of_memory;
  int64_t failed_bytes = 0;        // bytes of the failed allocation
  AllocatorStatistics statistics;  // at the end
  uint32_t steps = 0;              // number of steps run; peaks belong to the last one
  bool is_steady = false;          // the last step was like the one before
  // By place in the schedule, at the node's fullest. Filled with ReplayOptions::timeline.
  std::vector<int64_t> allocated_at, reserved_at;
};

// Observes each step as it runs.
class ReplayListener {
 public:
  static constexpr uint32_t kNoBlock = UINT32_MAX;

  virtual ~ReplayListener() = default;
  // Called before the first node of a step. Earlier events belong to earlier steps. `addresses`: by
  // block; 0 for blocks that are not allocated.
  virtual void on_begin(const std::vector<uint64_t>& addresses) = 0;
  // Called for an allocator event at a place in the schedule. `block`: the block, or kNoBlock for a
  // segment's event. A block released in one step may complete its free in the next.
  virtual void on_event(uint32_t place, uint32_t block, const AllocatorEvent& event) = 0;
  // Called after the last node, or after running out of memory.
  virtual void on_end(const CachingAllocator& allocator) = 0;
};

// 1024 TiB, above any device: the address space of the simulated device.
inline constexpr int64_t kMaxDeviceBytes = int64_t{1} << 50;

struct ReplayOptions {
  AllocatorConfig config;
  // Memory of the device; absent, or above kMaxDeviceBytes: no limit.
  std::optional<int64_t> device_bytes;
  int64_t other_bytes = 0;  // the part of it that others than the allocator use
  bool steady = false;      // run steps until two are alike; requires the trace of a later step
  bool timeline = false;    // fill allocated_at and reserved_at
  ReplayListener* listener = nullptr;
};

// Runs a trace through a CachingAllocator on a simulated device and one stream.
//
// A kRelease frees its block with a recorded use on a stream of its own. The events of that stream
// complete at the block's kFree, or when a failing allocation waits for them. So each collective
// delays only its own blocks. On a real device, the event follows all earlier work of the
// collective's stream. It completes when the device, not the host, reaches it.
//
// With `steady` the first step runs on an empty allocator, without memory kept between steps.
// Optimizer state is allocated after it. Gradients stay where the first step put them, or are freed
// before the next step. Other outputs are freed, and donated inputs are allocated again. Steps
// repeat until one has the peaks and the reserved bytes of the previous one, at most sixteen times.
// O(events * log(blocks) * steps).
AllocatorReplay replay_allocator(const MemoryTrace& trace, const ReplayOptions& options);

}  // namespace fxopt
