#include "ir/memory/replay.h"

#include <algorithm>
#include <unordered_map>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/simulated_device.h"

namespace fxopt {
namespace {

constexpr int64_t kStream = 0;
constexpr uint32_t kMaxSteps = 16;

class Replayer {
 public:
  Replayer(const MemoryTrace& trace, const ReplayOptions& options)
      : trace_(trace),
        options_(options),
        device_(device_bytes(options), std::min(options.other_bytes, device_bytes(options))),
        allocator_(device_, options.config),
        addresses_(trace.blocks.size(), 0) {}

  AllocatorReplay run() {
    bool goes_on = true;
    while (goes_on && !result_.is_steady && result_.steps < (options_.steady ? kMaxSteps : 1)) {
      const AllocatorReplay before = result_;
      result_ = AllocatorReplay();
      result_.steps = before.steps + 1;
      allocator_.reset_peaks();
      goes_on = step(options_.listener);
      result_.statistics = allocator_.statistics();
      result_.is_steady = goes_on && before.steps > 1 && is_like(before);
      if (goes_on && options_.steady) goes_on = end_step();
    }
    return std::move(result_);
  }

 private:
  static int64_t device_bytes(const ReplayOptions& options) {
    return std::min(options.device_bytes.value_or(kMaxDeviceBytes), kMaxDeviceBytes);
  }

  bool is_like(const AllocatorReplay& before) const {
    const auto same = [](const ReplayPeak& a, const ReplayPeak& b) { return a.bytes == b.bytes && a.node == b.node; };
    return same(result_.requested, before.requested) && same(result_.allocated, before.allocated) &&
           same(result_.active, before.active) && same(result_.reserved, before.reserved) &&
           result_.statistics.reserved_bytes[kAllPools].current == before.statistics.reserved_bytes[kAllPools].current;
  }

  bool step(ReplayListener* listener) {
    if (!allocate_initial()) return false;
    if (listener == nullptr) return run_nodes();
    listener->on_begin(addresses_);
    allocator_.observe([this, listener](const AllocatorEvent& event) {
      const bool is_segment =
          event.action == AllocatorAction::kSegmentAllocate || event.action == AllocatorAction::kSegmentFree ||
          event.action == AllocatorAction::kSegmentMap || event.action == AllocatorAction::kSegmentUnmap;
      listener->on_event(place_, is_segment ? ReplayListener::kNoBlock : block_of(event), event);
    });
    const bool fits = run_nodes();
    allocator_.observe(nullptr);
    listener->on_end(allocator_);
    return fits;
  }

  bool run_nodes() {
    for (place_ = 0; place_ < trace_.schedule.size(); ++place_) {
      if (!run_node(place_)) return false;
    }
    return true;
  }

  bool allocate_initial() {
    for (const uint32_t block : trace_.initial) {
      const BlockSource source = trace_.blocks[block].source;
      const bool comes_later = source == BlockSource::kKept || source == BlockSource::kPersistent;
      if ((comes_later && result_.steps == 1) || allocate(block)) continue;
      note_peaks(NodeId());
      result_.out_of_memory = trace_.blocks[block].node;
      return false;
    }
    note_peaks(NodeId());
    return true;
  }

  bool run_node(uint32_t place) {
    const std::span<const TraceEvent> events = trace_.events_at(place);
    const NodeId node = trace_.schedule[place];
    size_t next = 0;
    for (; next < events.size() && events[next].action == TraceAction::kTake; ++next) {
      if (allocate(events[next].block)) continue;
      note_peaks(node);
      result_.out_of_memory = node;
      return false;
    }
    note_peaks(node);
    if (options_.timeline) note_timeline();
    for (; next < events.size(); ++next) {
      const uint32_t block = events[next].block;
      if (events[next].action == TraceAction::kRelease) {
        release(block);
      } else if (addresses_[block] != 0) {
        free(block);
      } else {
        device_.finish(stream_of(block));  // its kRelease event came earlier
      }
    }
    return true;
  }

  // Does the work of the training loop after a step: the optimizer runs, gradients are kept or
  // freed, outputs are freed.
  bool end_step() {
    if (result_.steps == 1) {
      for (const uint32_t block : trace_.initial) {
        const TraceBlock& kept = trace_.blocks[block];
        if (kept.source == BlockSource::kKept && kept.kind == MemoryClass::kOptimizerState && !allocate(block)) {
          result_.out_of_memory = kept.node;
          return false;
        }
      }
      keep_gradients();
    }
    for (uint32_t block = 0; block < trace_.blocks.size(); ++block) {
      const TraceBlock& ended = trace_.blocks[block];
      if (ended.source == BlockSource::kStorage) free(block);
    }
    return true;
  }

  // The gradients of the first step are kept, and later steps add to them.
  void keep_gradients() {
    for (const uint32_t block : trace_.initial) {
      const TraceBlock& kept = trace_.blocks[block];
      if (kept.source != BlockSource::kKept || kept.kind != MemoryClass::kGradient) continue;
      std::swap(addresses_[block], addresses_[kept.like]);
    }
  }

  // Does nothing if the block is already allocated. This is true for most memory kept between
  // steps.
  bool allocate(uint32_t block) {
    if (addresses_[block] != 0) return true;
    block_ = block;
    const int64_t bytes = trace_.blocks[block].bytes;
    const std::optional<uint64_t> address = allocator_.allocate(bytes, kStream);
    if (!address.has_value()) {
      result_.failed_bytes = bytes;
      return false;
    }
    addresses_[block] = *address;
    released_.erase(*address);
    return true;
  }

  void free(uint32_t block) {
    block_ = block;
    if (addresses_[block] != 0) allocator_.free(addresses_[block]);
    addresses_[block] = 0;
  }

  void release(uint32_t block) {
    released_[addresses_[block]] = block;
    allocator_.record_stream(addresses_[block], stream_of(block));
    free(block);
  }

  // Returns the stream of the collective that uses a block. Each block has its own stream, so each
  // event completes at its own wait.
  static int64_t stream_of(uint32_t block) { return kStream + 1 + block; }

  // Returns the event's block. While a block is allocated, the free of an earlier released block
  // may complete.
  uint32_t block_of(const AllocatorEvent& event) const {
    const auto found = released_.find(event.address);
    return event.action == AllocatorAction::kFreeCompleted && found != released_.end() ? found->second : block_;
  }

  void note_peaks(NodeId node) {
    const AllocatorStatistics& now = allocator_.statistics();
    note(result_.requested, now.requested_bytes, node);
    note(result_.allocated, now.allocated_bytes, node);
    note(result_.active, now.active_bytes, node);
    note(result_.reserved, now.reserved_bytes, node);
  }

  static void note(ReplayPeak& peak, const StatisticByPool& statistic, NodeId node) {
    if (statistic[kAllPools].peak > peak.bytes) peak = {statistic[kAllPools].peak, node};
  }

  void note_timeline() {
    result_.allocated_at.push_back(allocator_.statistics().allocated_bytes[kAllPools].current);
    result_.reserved_at.push_back(allocator_.statistics().reserved_bytes[kAllPools].current);
  }

  const MemoryTrace& trace_;
  const ReplayOptions& options_;
  SimulatedDevice device_;
  CachingAllocator allocator_;
  std::vector<uint64_t> addresses_;  // by block; 0: not allocated
  // From an address to the block that was released there. Removed when the address is allocated
  // again.
  std::unordered_map<uint64_t, uint32_t> released_;
  uint32_t place_ = 0;  // current place
  uint32_t block_ = 0;  // current block
  AllocatorReplay result_;
};

}  // namespace

AllocatorReplay replay_allocator(const MemoryTrace& trace, const ReplayOptions& options) {
  return Replayer(trace, options).run();
}

}  // namespace fxopt
