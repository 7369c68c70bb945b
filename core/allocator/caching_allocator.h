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
inline constexpr int64_t kSmallBytes = int64_t{1} << 20;  // up to this a rounded size goes to the small pool
inline constexpr int64_t kSmallSegmentBytes = int64_t{2} << 20;
inline constexpr int64_t kMinLargeBytes = int64_t{10} << 20;  // below, a large segment serves several blocks
inline constexpr int64_t kRoundLargeBytes = int64_t{2} << 20;
inline constexpr int64_t kMaxRequestBytes = int64_t{1} << 60;  // beyond, a request is refused unseen

// The bytes a request takes at least: a multiple of 512, or of the configured fraction of a power of two. `bytes` in
// [1, kMaxRequestBytes]. O(1).
int64_t round_request(int64_t bytes, const AllocatorConfig& config);

// The bytes of the segment made for a rounded size that no cached block serves. O(1).
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

// PyTorch's CUDA caching allocator on any device: the same code simulates a run and serves one. The rules, where each
// comes from, and what is left out stand in core/allocator/README.md. Deterministic: the same calls on the same device
// give the same addresses and statistics. Not thread-safe.
//
// With n blocks in being, each call is O(log n) beside the events and frees that fall due, except that expandable
// segments walk the unmapped ranges of a stream when they grow, and that collecting garbage walks its pool.
class CachingAllocator {
 public:
  // `device` must outlive the allocator, which gives nothing back to it at its end.
  CachingAllocator(AllocatorDevice& device, AllocatorConfig config);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // The address of a block of at least `bytes` for work on `stream`; 0 for 0 bytes, which take nothing. Nullopt when
  // the device has no room even after everything cached was given back: counted in num_ooms, unless the request is
  // beyond kMaxRequestBytes.
  std::optional<uint64_t> allocate(int64_t bytes, int64_t stream);

  // Ends the use of what `allocate` returned; 0 is ignored. The block can be used again at once by its own stream, or,
  // where record_stream named others, when the work these have been given so far is done.
  void free(uint64_t address);

  // Says that work on `stream` uses the allocated block at `address`. Of no effect for the block's own stream.
  void record_stream(uint64_t address, int64_t stream);

  // From here to end_pool, requests on streams for which `filter` is true are served by the private pool `id`, made
  // where there is none. Where several pools match, the one begun last serves. `id` may be begun again after its end,
  // but not after its last release while it still holds memory.
  void begin_pool(PoolId id, std::function<bool(int64_t)> filter);
  void end_pool(PoolId id);

  // Between the two a stream is captured into a graph, mostly with a pool begun around it: no event is recorded or
  // asked about, and a failed request gives nothing back that is cached. Captures may overlap.
  void begin_capture() { ++captures_; }
  void end_capture();

  // Takes one begin_pool back. After the last, the pool's unsplit free blocks are given back with the others cached.
  void release_pool(PoolId id);

  // Waits for all events and gives every unsplit free block of the default and the released pools back to the device,
  // and of expandable segments every whole free page. During a capture it does so for the released pools alone, and
  // does not wait. O(n log n).
  void empty_cache();

  void reset_peaks();        // every peak becomes the current value
  void reset_accumulated();  // the sums and the plain counts become 0

  const AllocatorStatistics& statistics() const { return statistics_; }
  const AllocatorConfig& config() const { return config_; }

  // The bytes of the allocated block at `address`.
  int64_t block_bytes(uint64_t address) const;

  // All segments by address. Between calls, blocks without a user may appear as kPendingFree until their events are
  // looked at by the next allocate. O(n).
  std::vector<SegmentInfo> snapshot() const;

  // Is told each event as it happens, in place of who was told before. It must not call the allocator.
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
    int64_t added_blocks;  // free ones: below 0 where neighbours were taken in
    int64_t added_bytes;
  };
  struct Pending {
    uint64_t event;
    Block* block;
  };
  using Events = std::map<int64_t, std::deque<Pending>>;  // by stream, in the order recorded
  struct AddressHash {                                    // addresses are multiples of 512: their low bits tell nothing
    size_t operator()(uint64_t address) const { return (address >> 9) * 0x9e3779b97f4a7c15 >> 20; }
  };

  // caching_allocator.cpp
  BlockPool& pool_for(int64_t bytes, int64_t stream);
  Block* take_cached(const Request& request);
  Block* prefer_short_tail(BlockPool& pool, Block* fit) const;
  bool should_split(const Block& block, int64_t bytes) const;
  void hand_out(Block* block, const Request& request, int64_t requested_bytes);
  void split(Block* block, int64_t bytes);
  Block* cut(Block* block, int64_t bytes);  // leaves the low `bytes` in `block` and gives the rest
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
  std::vector<Route> routes_;                         // of pools begun and not ended, in that order
  int64_t captures_ = 0;                              // under way
  HashMap<uint64_t, Block*, AddressHash> allocated_;  // by address
  std::map<uint64_t, Block*> segments_;               // the lowest block of each segment or reserved range
  Events events_;
  std::vector<Block*> deferred_;  // freed during a capture while in use by other streams
  int64_t allowed_bytes_ = AllocatorConfig::kUnlimited;
};

}  // namespace fxopt
