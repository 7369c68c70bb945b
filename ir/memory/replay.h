#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/config.h"
#include "core/allocator/statistics.h"
#include "ir/memory/trace.h"

namespace fxopt {

// The largest value of one statistic, and the first node at which it is reached; no node when what is there before the
// first one reaches it.
struct ReplayPeak {
  int64_t bytes = 0;
  NodeId node;
};

// What the framework's caching allocator makes of one device's trace.
struct AllocatorReplay {
  ReplayPeak requested;            // what was asked for
  ReplayPeak allocated;            // after rounding and splitting, as torch.cuda.max_memory_allocated
  ReplayPeak active;               // with what streams still hold
  ReplayPeak reserved;             // segments taken from the device, as torch.cuda.max_memory_reserved
  NodeId out_of_memory;            // where an allocation failed, with which the replay ended; invalid when none did
  int64_t failed_bytes = 0;        // that allocation's
  AllocatorStatistics statistics;  // at the end
  uint32_t steps = 0;              // that were run; peaks are the last one's
  bool is_steady = false;          // that one was like the one before
  // By place in the schedule, at the node's fullest; when asked for.
  std::vector<int64_t> allocated_at, reserved_at;
};

// Is told of each step as it happens.
class ReplayListener {
 public:
  static constexpr uint32_t kNoBlock = UINT32_MAX;

  virtual ~ReplayListener() = default;
  // Before the first node of a step; what was told before is about an earlier one. `addresses`: by block; 0 for those
  // that are not there.
  virtual void on_begin(const std::vector<uint64_t>& addresses) = 0;
  // An allocator's event at a place in the schedule, about one block, or kNoBlock for a segment's. The end of what was
  // released in the step before may be told in this one.
  virtual void on_event(uint32_t place, uint32_t block, const AllocatorEvent& event) = 0;
  // Behind the last node, or where memory ran out.
  virtual void on_end(const CachingAllocator& allocator) = 0;
};

// 1024 TiB, above any device: the most for which the simulated one has addresses.
inline constexpr int64_t kMaxDeviceBytes = int64_t{1} << 50;

struct ReplayOptions {
  AllocatorConfig config;
  std::optional<int64_t> device_bytes;  // what the device has; absent, or above kMaxDeviceBytes: no limit
  int64_t other_bytes = 0;              // of it, what is taken by others than the allocator
  bool steady = false;                  // run steps until two are alike: the trace is of a step that is not the first
  bool timeline = false;                // fill allocated_at and reserved_at
  ReplayListener* listener = nullptr;
};

// Runs a trace through a CachingAllocator on a simulated device and one stream.
//
// What is released is freed with a recorded use on a stream of its own, whose events are done at the block's kFree, or
// when an allocation that fails waits for them. So a collective holds nothing but its own; on a device the event stands
// behind all that its stream was given by then, and is done when the device is there, not the host.
//
// With `steady` the first step runs on an empty allocator without what is kept between steps; optimizer state is taken
// behind it; gradients stay where the first step put them, or are freed before the next one; other outputs are freed;
// donated inputs are taken anew. Steps follow until one has the peaks of the one before and leaves as much reserved, or
// sixteen were run. O(events * log(blocks) * steps).
AllocatorReplay replay_allocator(const MemoryTrace& trace, const ReplayOptions& options);

}  // namespace fxopt
