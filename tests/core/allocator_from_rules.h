#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/allocator/config.h"
#include "core/allocator/device.h"
#include "core/allocator/statistics.h"

namespace fxopt {

// PyTorch's caching allocator once more, written from a description of its rules and without a look at CachingAllocator
// or AllocatorModel. It keeps one map of blocks for each segment and searches all of them: O(blocks) for each call.
class AllocatorFromRules {
 public:
  using PoolId = std::pair<int64_t, int64_t>;
  using StreamFilter = std::function<bool(int64_t)>;

  AllocatorFromRules(AllocatorDevice& device, const AllocatorConfig& config);

  // The address of a block on `stream`; 0 for 0 bytes, nothing when there is no memory.
  std::optional<uint64_t> allocate(int64_t bytes, int64_t stream);
  void free(uint64_t address);
  void record_stream(uint64_t address, int64_t stream);

  void begin_pool(PoolId id, StreamFilter filter);
  void end_pool(PoolId id);
  void release_pool(PoolId id);
  void begin_capture() { ++captures_; }
  void end_capture() { --captures_; }

  void empty_cache();
  void reset_peaks();
  void reset_accumulated();

  const AllocatorStatistics& statistics() const { return statistics_; }

  // A line for each block with memory, in the order of addresses: where the segment and the block begin, the block's
  // size, what was asked for, and "live", "waiting" for streams or "free".
  std::string picture() const;

 private:
  enum class State : uint8_t { kLive, kWaiting, kFree, kUnmapped };

  struct Block {
    int64_t bytes = 0;
    State state = State::kFree;
    int64_t requested = 0;
    std::set<int64_t> uses;           // by other streams, not yet turned into events
    std::set<int64_t> uses_captured;  // those of `uses` that were recorded in a capture
    int64_t events = 0;
    int64_t cached_at = 0;  // the pool's count of searches then
  };

  struct Pool {
    PoolId id;
    bool small = false;
    auto operator<=>(const Pool&) const = default;
  };

  struct Segment {
    Pool pool;
    int64_t stream = 0;
    bool expandable = false;
    int64_t bytes = 0;
    std::map<uint64_t, Block> blocks;  // by address; they cover the segment
  };

  using Blocks = std::map<uint64_t, Block>;
  struct Place {
    Segment* segment;
    Blocks::iterator block;
  };

  struct Request {
    int64_t bytes;  // as asked for
    int64_t size;   // of the block
    int64_t segment_bytes;
    int64_t stream;
    Pool pool;
  };

  struct Event {
    uint64_t event;
    uint64_t address;  // of the block that waits for it
  };

  int64_t round_size(int64_t bytes) const;
  Request request_of(int64_t bytes, int64_t stream) const;
  Place find(uint64_t address);
  int64_t page_of(const Segment& segment) const;
  bool has_limit() const { return config_.memory_fraction < 1; }
  int64_t allowed() const;
  int64_t reserved() const { return statistics_.reserved_bytes[0].current; }
  template <class Change>
  void count(StatisticByPool& statistic, bool small, Change change);
  void add(StatisticByPool& statistic, bool small, int64_t amount);

  static int64_t bytes_with_tail(const Place& place);
  std::optional<Place> search(const Request& request);
  std::optional<Place> get_memory(const Request& request);
  std::optional<Place> get_segment(const Request& request);
  uint64_t take(Place place, const Request& request);
  bool splits(const Segment& segment, int64_t block_bytes, int64_t size) const;

  Place range_for(const Request& request);
  std::optional<Place> expand(const Request& request);
  std::optional<Place> map_front(Place place, int64_t bytes);
  void unmap_pages(Place place);
  static Blocks::iterator join(Blocks& blocks, Blocks::iterator block);

  void record_events(uint64_t address);
  void record_deferred();
  void process_events();
  void synchronize();
  void event_is_done(const Event& event);
  void put_back(Place place);

  void collect_garbage();
  bool release_oversize(const Request& request);
  void release_cached();
  void release_pool_memory(Pool pool);
  std::vector<uint64_t> unsplit_blocks(Pool pool) const;
  void release_segment(uint64_t address);

  AllocatorDevice& device_;
  AllocatorConfig config_;
  AllocatorStatistics statistics_;
  std::map<uint64_t, Segment> segments_;  // by address
  std::map<Pool, int64_t> searches_;
  std::map<int64_t, std::vector<Event>> events_;  // by stream, in the order they were recorded
  std::vector<uint64_t> deferred_;                // freed in a capture, with uses
  int64_t captures_ = 0;
  std::vector<std::pair<PoolId, StreamFilter>> begun_;
  std::map<PoolId, int64_t> users_;
};

}  // namespace fxopt
