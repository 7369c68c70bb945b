#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/config.h"
#include "core/allocator/statistics.h"
#include "ir/memory/trace.h"

namespace fxopt {

// The largest value of one statistic, and the first node that reaches this value. The node is
// invalid if the value is already reached before the first node runs.
struct ReplayPeak {
  int64_t bytes = 0;
  NodeId node;
};

// The behaviour of the framework's caching allocator on one device's trace.
struct AllocatorReplay {
  ReplayPeak requested;  // requested bytes
  ReplayPeak allocated;  // bytes after rounding and splitting, like torch.cuda.max_memory_allocated
  ReplayPeak active;     // allocated bytes plus the bytes of freed blocks that streams still use
  ReplayPeak reserved;   // bytes of segments, like torch.cuda.max_memory_reserved
  // The node of the failed allocation, which ended the replay. Invalid if no allocation failed.
  NodeId out_of_memory;
  int64_t failed_bytes = 0;        // bytes of the failed allocation
  AllocatorStatistics statistics;  // statistics at the end of the replay
  uint32_t steps = 0;              // number of steps that were run; peaks belong to the last step
  bool is_steady = false;          // true if the last step was equal to the previous step
  // Bytes at each place of the schedule: after the node's allocations and before its frees. Filled
  // if ReplayOptions::timeline is set.
  std::vector<int64_t> allocated_at, reserved_at;
};

// Observes each training step during the replay.
class ReplayListener {
 public:
  static constexpr uint32_t kNoBlock = UINT32_MAX;

  virtual ~ReplayListener() = default;
  // Called before the first node of a step. Allocations before the first node are not reported as
  // events. `addresses` has the address of each block, or 0 if the block is not allocated.
  virtual void on_begin(const std::vector<uint64_t>& addresses) = 0;
  // Called for an allocator event at a place in the schedule. `block` is kNoBlock if the event
  // concerns a segment. If a stream still uses a block when the block is freed, the event
  // kFreeCompleted is delayed until the use ends, sometimes to the next step.
  virtual void on_event(uint32_t place, uint32_t block, const AllocatorEvent& event) = 0;
  // Called after the last node, or after the replay runs out of memory.
  virtual void on_end(const CachingAllocator& allocator) = 0;
};

// The address space of the simulated device: 1024 TiB, larger than any device's memory.
inline constexpr int64_t kMaxDeviceBytes = int64_t{1} << 50;

struct ReplayOptions {
  AllocatorConfig config;
  // Memory of the device. If the value is absent or above kMaxDeviceBytes, memory has no limit.
  std::optional<int64_t> device_bytes;
  int64_t other_bytes = 0;  // bytes of the device that are used outside the allocator
  // Runs steps until two consecutive steps are equal. Requires a trace with MemoryTrace::is_steady.
  bool steady = false;
  bool timeline = false;  // fills allocated_at and reserved_at
  ReplayListener* listener = nullptr;
};

// Runs a trace through a CachingAllocator on a simulated device and one stream.
//
// At a kRelease event, the replay frees the block, but records a use of the block on another
// stream, like Tensor.record_stream(). Each kRelease has a separate stream, so each collective
// delays only its own blocks. In the replay, the use ends at the block's kFree event, which is at
// the collective's wait. The use ends earlier if a failing allocation waits for the end of the use.
//
// On a real device, the use ends when a CUDA event on the collective's stream completes. The CUDA
// event completes when the device has finished all earlier work on this stream. The CUDA event may
// therefore complete before or after the host runs the collective's wait.
//
// If `steady` is set, the first step runs on an empty allocator: memory that is kept between steps
// is not allocated yet. Optimizer state is allocated after the first step. Gradients stay in the
// blocks of the first step, or are freed before the next step. Other outputs are freed, and donated
// inputs are allocated again. Steps are repeated until a step has the same peaks and reserved bytes
// as the previous step. At most sixteen steps are run. O(events * log(blocks) * steps).
AllocatorReplay replay_allocator(const MemoryTrace& trace, const ReplayOptions& options);

}  // namespace fxopt
