#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/allocator/config.h"
#include "core/allocator/device.h"
#include "core/allocator/statistics.h"

namespace fxopt {

// A second implementation of the caching allocator's rules, to check the real allocator. The
// implementation is simple and slow. All memory is one list of pieces in address order, and every
// query walks the whole list. After each step, the statistics are counted again, and the
// differences are recorded. The model shares the device, the settings and the statistics struct
// with the real allocator. The model does not share any rule with the real allocator.
class AllocatorModel {
 public:
  AllocatorModel(AllocatorDevice& device, const AllocatorConfig& config);

  std::optional<uint64_t> allocate(int64_t bytes, int64_t stream);
  void free(uint64_t address);
  void record_stream(uint64_t address, int64_t stream);
  void begin_pool(std::pair<int64_t, int64_t> id, std::function<bool(int64_t)> filter);
  void end_pool(std::pair<int64_t, int64_t> id);
  void begin_capture() { ++captures_; }
  void end_capture() { --captures_; }
  void release_pool(std::pair<int64_t, int64_t> id);
  void empty_cache();
  void reset_peaks();
  void reset_accumulated();

  const AllocatorStatistics& statistics() const { return statistics_; }

  // Returns one line for each piece with memory: segment, address, bytes, requested bytes, state.
  std::string picture() const;

 private:
  enum class State { kLive, kWaiting, kFree, kHole };
  using Pool = std::pair<std::pair<int64_t, int64_t>, bool>;  // id, small; the default pools have the id (0, 0)

  struct Piece {
    uint64_t segment;  // start of the segment or range
    uint64_t address;
    int64_t bytes;
    int64_t stream;
    Pool pool;
    State state;
    int64_t requested = 0;
    int64_t born = 0;  // number of searches in the pool when the piece became free
    std::set<int64_t> uses;
    std::set<int64_t> uses_in_capture;
  };
  struct Waiting {
    int64_t stream;
    uint64_t event;
    uint64_t address;
  };
  struct Private {
    std::pair<int64_t, int64_t> id;
    int64_t users;
  };

  int64_t rounded(int64_t bytes) const;
  int64_t new_segment_bytes(int64_t bytes) const;
  Pool choose_pool(int64_t bytes, int64_t stream) const;
  std::optional<size_t> best_fit(int64_t bytes, int64_t stream, const Pool& pool);
  std::optional<size_t> last_resorts(int64_t bytes, int64_t stream, const Pool& pool);
  std::optional<size_t> grow(int64_t bytes, int64_t stream, const Pool& pool);
  std::optional<size_t> grow_range(int64_t bytes, int64_t stream, const Pool& pool);
  size_t place_with_room(int64_t bytes, int64_t stream, const Pool& pool);
  bool map_at(size_t at, int64_t bytes);
  void unmap_pages(uint64_t address);
  void take(size_t at, int64_t bytes, int64_t requested);
  void cut(size_t at, int64_t bytes);
  void join(uint64_t segment);
  void set_free(uint64_t address);
  void poll();
  void wait_for_all();
  void mark_waiting();
  void watch(Piece& piece);
  void collect();
  bool give_back_oversize(int64_t bytes, int64_t stream, const Pool& pool);
  void release(uint64_t address);
  void give_back_pool(const Pool& pool);
  void give_back_all();

  size_t find(uint64_t address) const;
  bool alone(size_t at) const;
  bool same_segment(size_t a, size_t b) const;
  std::vector<size_t> free_pieces(int64_t stream, const Pool& pool) const;
  int64_t page(const Pool& pool) const;
  int64_t& searches(const Pool& pool);
  int64_t total_reserved() const;
  bool collects() const { return config_.memory_fraction < 1 && config_.garbage_collection_threshold > 0; }
  int64_t allowed() const;
  void settle();
  AllocatorStatistics counted() const;

  AllocatorDevice& device_;
  AllocatorConfig config_;
  std::vector<Piece> pieces_;
  std::vector<Waiting> waiting_;  // in the order in which they were recorded
  std::vector<uint64_t> after_capture_;
  std::vector<std::pair<std::pair<int64_t, int64_t>, std::function<bool(int64_t)>>> routes_;
  int captures_ = 0;
  std::vector<Private> privates_;
  std::vector<std::pair<Pool, int64_t>> searches_;
  AllocatorStatistics statistics_;
};

}  // namespace fxopt
