#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/allocator/block.h"
#include "core/allocator/config.h"
#include "core/allocator/device.h"
#include "core/allocator/statistics.h"
#include "core/hash_table.h"

namespace fxopt {

// Constants of PyTorch's CUDA caching allocator (2.15, c10/core/AllocatorConfig.h), in bytes.
inline constexpr int64_t kMinBlockBytes = 512;            // quantum of rounding, smallest block
inline constexpr int64_t kSmallBytes = int64_t{1} << 20;  // largest rounded size of the small pool
inline constexpr int64_t kSmallSegmentBytes = int64_t{2} << 20;
inline constexpr int64_t kMinLargeBytes = int64_t{10} << 20;  // below, blocks share a segment
inline constexpr int64_t kRoundLargeBytes = int64_t{2} << 20;
// larger requests are refused without asking the device
inline constexpr int64_t kMaxRequestBytes = int64_t{1} << 60;

// Rounds a request up to a multiple of 512, or of the configured fraction of a power of two.
// `bytes` in [1, kMaxRequestBytes]. O(1).
int64_t round_request(int64_t bytes, const AllocatorConfig& config);

// Returns the size of the segment made for a rounded size that no cached block serves. O(1).
int64_t segment_bytes_for(int64_t rounded_bytes, const AllocatorConfig& config);

enum class AllocatorAction : uint8_t {
  kAllocate,       // bytes as requested
  kFreeRequested,  // bytes as requested
  kFreeCompleted,  // bytes as requested
  kSegmentAllocate,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOutOfMemory,  // address holds the device's free bytes, bytes the rounded request
};

// One entry of the history that memory snapshots carry.
struct AllocatorEvent {
  AllocatorAction action{};
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t stream = 0;

  bool operator==(const AllocatorEvent&) const = default;
};

enum class BlockState : uint8_t { kAllocated, kPendingFree, kFree };

struct BlockInfo {
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t requested_bytes = 0;  // 0 when free
  BlockState state{};
};

// A segment, or a contiguous mapped range of an expandable one. The blocks tile it.
struct SegmentInfo {
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t stream = 0;
  bool small = false;
  bool expandable = false;
  PoolId pool{0, 0};
  std::vector<BlockInfo> blocks;
};

// PyTorch's CUDA caching allocator on any device: the same code simulates a run and serves one.
// core/allocator/README.md lists the rules, the source of each, and the omissions. Deterministic:
// the same calls on the same device give the same addresses and statistics. Not thread-safe.
//
// With n blocks in existence, each call is O(log n), plus the events and frees that fall due. Two
// exceptions: growing an expandable segment walks the stream's unmapped ranges, and collecting
// garbage walks its pool.
class CachingAllocator {
 public:
  // `device` must outlive the allocator, whose destructor returns no memory to it.
  CachingAllocator(AllocatorDevice& device, AllocatorConfig config);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // Returns the address of a block of at least `bytes` for work on `stream`. Returns 0 for 0 bytes,
  // which take no memory. Returns nullopt if the device has no room even after all cached memory
  // was released. num_ooms counts such failures, except for requests above kMaxRequestBytes.
  std::optional<uint64_t> allocate(int64_t bytes, int64_t stream);

  // Frees the block that `allocate` returned; 0 is ignored. Its own stream can reuse the block at
  // once. If record_stream named other streams, the block is reusable after the work queued on them
  // so far is done.
  void free(uint64_t address);

  // Records that work on `stream` uses the allocated block at `address`. No effect for the block's
  // own stream.
  void record_stream(uint64_t address, int64_t stream);

  // From here to end_pool, the private pool `id` serves requests on streams for which `filter` is
  // true. The pool is created if it does not exist. If several pools match, the one begun last
  // serves. `id` may be begun again after its end, but not after its last release while it still
  // holds memory.
  void begin_pool(PoolId id, std::function<bool(int64_t)> filter);
  void end_pool(PoolId id);

  // Between the two calls a stream is captured into a graph, mostly with a pool begun around it. No
  // event is recorded or queried, and a failed request releases no cached memory. Captures may
  // overlap.
  void begin_capture() { ++captures_; }
  void end_capture();

  // Undoes one begin_pool. After the last, the pool's unsplit free blocks are released like other
  // cached blocks.
  void release_pool(PoolId id);

  // Waits for all events. Then returns every unsplit free block of the default and the released
  // pools to the device, and every whole free page of expandable segments. During a capture it does
  // so only for the released pools, and does not wait. O(n log n).
  void empty_cache();

  void reset_peaks();        // sets every peak to the current value
  void reset_accumulated();  // sets the sums and the plain counts to 0

  const AllocatorStatistics& statistics() const { return statistics_; }
  const AllocatorConfig& config() const { return config_; }

  // Returns the size of the allocated block at `address`.
  int64_t block_bytes(uint64_t address) const;

  // Returns all segments by address. Between calls, blocks without a user may appear as
  // kPendingFree until the next allocate processes their events. O(n).
  std::vector<SegmentInfo> snapshot() const;

  // Sets the observer of events, which replaces the previous one. It must not call the allocator.
  void observe(std::function<void(const AllocatorEvent&)> observer) { observer_ = std::move(observer); }

 private:
  struct Request {
    int64_t bytes;  // rounded
    int64_t stream;
    BlockPool* pool;
    int64_t segment_bytes;
  };
  struct Route {
    PoolId id;
    std::function<bool(int64_t)> filter;
  };
  struct Merged {
    Block* block;
    int64_t added_blocks;  // free blocks; below 0 if neighbours were merged in
    int64_t added_bytes;
  };
  struct Pending {
    uint64_t event;
    Block* block;
  };
  using Events = std::map<int64_t, std::deque<Pending>>;  // by stream, in the order recorded
  struct AddressHash {  // addresses are multiples of 512: their low bits carry nothing
    size_t operator()(uint64_t address) const { return (address >> 9) * 0x9e3779b97f4a7c15 >> 20; }
  };

  // caching_allocator.cpp
  BlockPool& pool_for(int64_t bytes, int64_t stream);
  Block* take_cached(const Request& request);
  Block* prefer_short_tail(BlockPool& pool, Block* fit) const;
  bool should_split(const Block& block, int64_t bytes) const;
  void hand_out(Block* block, const Request& request, int64_t requested_bytes);
  void split(Block* block, int64_t bytes);
  Block* cut(Block* block, int64_t bytes);  // keeps the low `bytes` in `block` and returns the rest
  void count_allocation(const Block& block);
  Block* block_at(uint64_t address) const;

  // free.cpp
  void free_block(Block* block);
  Merged merge_neighbours(Block* block);
  void join_next(Block* low);
  void cache(Block* block);
  void record_events(Block* block);
  void record_deferred_events();
  void process_events();
  Events::iterator process_events(Events::iterator at);
  void wait_for_events();
  void event_is_done(Block* block);

  // segment.cpp
  Block* make_segment(const Request& request);
  Block* obtain(const Request& request);
  bool is_beyond_fraction(int64_t bytes) const;
  int64_t reserved_bytes() const { return statistics_.reserved_bytes[static_cast<size_t>(PoolKind::kAll)].current; }
  bool collects_garbage() const;
  void collect_garbage();
  bool release_oversize(const Request& request);
  void release_cached();
  void release_blocks(BlockPool& pool);
  void release_segment(Block* block);

  // expandable.cpp
  Block* expand(const Request& request);
  Block* find_room(const Request& request);
  Block* map_block(Block* block, int64_t bytes);
  void unmap_block(Block* block);
  int64_t page_bytes(const BlockPool& pool) const;
  int64_t range_bytes(const BlockPool& pool) const;

  template <class Change>
  void count(StatisticByPool& statistic, const BlockPool& pool, Change change) {
    change(statistic[static_cast<size_t>(PoolKind::kAll)]);
    change(statistic[static_cast<size_t>(pool.small ? PoolKind::kSmall : PoolKind::kLarge)]);
  }
  void add(StatisticByPool& statistic, const BlockPool& pool, int64_t amount) {
    count(statistic, pool, [amount](Statistic& s) { s.increase(amount); });
  }
  void subtract(StatisticByPool& statistic, const BlockPool& pool, int64_t amount) {
    count(statistic, pool, [amount](Statistic& s) { s.decrease(amount); });
  }
  void tell(AllocatorAction action, uint64_t address, int64_t bytes, int64_t stream) {
    if (observer_) observer_(AllocatorEvent{action, address, bytes, stream});
  }

  AllocatorDevice& device_;
  AllocatorConfig config_;
  AllocatorStatistics statistics_;
  std::function<void(const AllocatorEvent&)> observer_;
  BlockArena arena_;
  BlockPool small_{true, nullptr};
  BlockPool large_{false, nullptr};
  std::map<PoolId, std::unique_ptr<PrivatePool>> private_pools_;
  std::vector<Route> routes_;                         // pools begun and not ended, in that order
  int64_t captures_ = 0;                              // captures under way
  HashMap<uint64_t, Block*, AddressHash> allocated_;  // by address
  std::map<uint64_t, Block*> segments_;               // lowest block of each segment or range
  Events events_;
  std::vector<Block*> deferred_;  // freed during a capture while in use by other streams
  int64_t allowed_bytes_ = AllocatorConfig::kUnlimited;
};

}  // namespace fxopt
