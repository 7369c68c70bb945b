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
inline constexpr int64_t kMinBlockBytes = 512;  // unit of rounding and smallest block
// The small pool serves requests whose rounded size is at most this number.
inline constexpr int64_t kSmallBytes = int64_t{1} << 20;
inline constexpr int64_t kSmallSegmentBytes = int64_t{2} << 20;
inline constexpr int64_t kMinLargeBytes = int64_t{10} << 20;  // smaller requests share a segment
inline constexpr int64_t kRoundLargeBytes = int64_t{2} << 20;
// A request for more bytes fails before the allocator asks the device.
inline constexpr int64_t kMaxRequestBytes = int64_t{1} << 60;

// Rounds a request of `bytes` up to a multiple of 512 bytes. A setting can select a coarser
// rounding: AllocatorConfig::roundup_power2_divisions contains a number n for each range of sizes.
// If n is above 1, the interval between two powers of two is divided into n equal steps. A request
// of more than (n * 512) bytes is then rounded up to the next step. For example, with n = 4 the
// steps from 4096 to 8192 have 1024 bytes, so 4100 bytes are rounded up to 5120 bytes. `bytes` is
// in [1, kMaxRequestBytes]. O(1).
int64_t round_request(int64_t bytes, const AllocatorConfig& config);

// Returns the size of the new segment for a request of `rounded_bytes` that no cached block can
// serve. O(1).
int64_t segment_bytes_for(int64_t rounded_bytes, const AllocatorConfig& config);

enum class AllocatorAction : uint8_t {
  kAllocate,       // `bytes` is the requested size
  kFreeRequested,  // `bytes` is the requested size
  kFreeCompleted,  // `bytes` is the requested size
  kSegmentAllocate,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  // `bytes` is the requested size after rounding. As in PyTorch's history, the field `address` does
  // not contain an address. It contains the number of free bytes on the device.
  kOutOfMemory,
};

// One entry of the allocation history in a memory snapshot.
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
  int64_t requested_bytes = 0;  // 0 for a free block
  BlockState state{};
};

// A segment, or a contiguous mapped range of an expandable segment. The blocks cover the segment or
// range without gaps or overlaps.
struct SegmentInfo {
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t stream = 0;
  bool small = false;
  bool expandable = false;
  PoolId pool{0, 0};
  std::vector<BlockInfo> blocks;
};

// PyTorch's CUDA caching allocator for any device. The class simulates the memory of a run, or
// allocates the memory of a real run. core/allocator/README.md lists the rules, the source of each
// rule, and the omissions. The class is deterministic: the same calls on the same device give the
// same addresses and statistics. The class is not thread-safe.
//
// With n existing blocks, each call is O(log n), plus the work for the events and frees that
// complete in this call. Two operations cost more:
//   - Growing an expandable segment visits the stream's unmapped ranges.
//   - Garbage collection visits all cached blocks of its pool.
class CachingAllocator {
 public:
  // `device` must outlive the allocator. The destructor of the allocator does not return memory to
  // the device.
  CachingAllocator(AllocatorDevice& device, AllocatorConfig config);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // Returns the address of a block of at least `bytes` for work on `stream`. Returns 0 if `bytes`
  // is 0, because a request of 0 bytes takes no memory. Returns nullopt if the device has no room
  // even after all cached memory was released. The statistic num_ooms counts these failures, except
  // for requests above kMaxRequestBytes.
  std::optional<uint64_t> allocate(int64_t bytes, int64_t stream);

  // Frees the block at `address`, which allocate() returned. Ignores address 0. If no other stream
  // used the block, the block's own stream can reuse the block at once. If record_stream() named
  // other streams, the block can be reused after these streams have finished all work that was
  // queued when free() was called.
  void free(uint64_t address);

  // Records that work on `stream` uses the allocated block at `address`. Has no effect if `stream`
  // is the block's own stream.
  void record_stream(uint64_t address, int64_t stream);

  // Until end_pool(id), the private pool `id` serves requests on every stream for which `filter`
  // returns true. The pool is created if it does not exist. If several active pools accept a
  // stream, the most recently started pool serves the request. `id` can be started again after
  // end_pool(). After the last release_pool(id), `id` cannot be started again while the pool still
  // holds memory.
  void begin_pool(PoolId id, std::function<bool(int64_t)> filter);
  void end_pool(PoolId id);

  // Mark the beginning and the end of the capture of a stream into a CUDA graph. A private pool is
  // usually active during the capture. The allocator neither records nor queries events during a
  // capture. A request during a capture skips the step that releases all cached memory, so the
  // request may fail although cached memory exists. Captures may overlap.
  void begin_capture() { ++captures_; }
  void end_capture();

  // Undoes one call of begin_pool(). After all calls for a pool are undone, the allocator may
  // return the pool's cached memory to the device.
  void release_pool(PoolId id);

  // Waits for all events. Then returns free memory of the default pools and of the released pools
  // to the device:
  //   - every unsplit free block of a segment that is not expandable
  //   - every whole free page of an expandable segment
  //
  // During a capture, empty_cache() does not wait for events, and returns only memory of the
  // released pools. O(n log n).
  void empty_cache();

  // Sets the peak of every Statistic to the current value.
  void reset_peaks();
  // Sets `allocated` and `freed` of every Statistic to 0, and every counter num_* to 0.
  void reset_accumulated();

  const AllocatorStatistics& statistics() const { return statistics_; }
  const AllocatorConfig& config() const { return config_; }

  // Returns the size of the allocated block at `address`.
  int64_t block_bytes(uint64_t address) const;

  // Returns all segments, sorted by address. A freed block that other streams used appears as
  // kPendingFree until allocate() or empty_cache() processes the events of the block. O(n).
  std::vector<SegmentInfo> snapshot() const;

  // Sets the function that is called for each AllocatorEvent. Removes the previous function. The
  // function must not call the allocator.
  void observe(std::function<void(const AllocatorEvent&)> observer) { observer_ = std::move(observer); }

 private:
  struct Request {
    int64_t bytes;  // after round_request()
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
    int64_t added_blocks;  // change in the number of free blocks; negative after a merge
    int64_t added_bytes;
  };
  struct Pending {
    uint64_t event;
    Block* block;
  };
  using Events = std::map<int64_t, std::deque<Pending>>;  // by stream, in the order of recording
  // Addresses are multiples of 512, so their low bits are always 0.
  struct AddressHash {
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
  std::vector<Route> routes_;                         // active pools, in the order of begin_pool()
  int64_t captures_ = 0;                              // number of captures under way
  HashMap<uint64_t, Block*, AddressHash> allocated_;  // allocated blocks by address
  std::map<uint64_t, Block*> segments_;               // lowest block of each segment or range
  Events events_;
  std::vector<Block*> deferred_;  // blocks freed during a capture while other streams used them
  int64_t allowed_bytes_ = AllocatorConfig::kUnlimited;
};

}  // namespace fxopt
