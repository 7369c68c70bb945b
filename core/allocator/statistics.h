#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace fxopt {

// One counter of torch.cuda.memory_stats. `allocated` is the sum of all increases, and `freed` is
// the sum of all decreases.
struct Statistic {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;

  void increase(int64_t amount) {
    current += amount;
    peak = std::max(peak, current);
    allocated += amount;
  }
  void decrease(int64_t amount) {
    current -= amount;
    freed += amount;
  }
  void change(int64_t amount) { amount > 0 ? increase(amount) : decrease(-amount); }

  bool operator==(const Statistic&) const = default;
};

// Private pools are counted in kSmall and kLarge, like the default pools.
enum class PoolKind : uint8_t { kAll, kSmall, kLarge };
inline constexpr size_t kAllPools = static_cast<size_t>(PoolKind::kAll);
using StatisticByPool = std::array<Statistic, 3>;  // indexed by PoolKind

// The counters that torch.cuda.memory_stats reports. Members whose names end in _bytes are in
// bytes. The other members are counts.
struct AllocatorStatistics {
  StatisticByPool allocation;       // blocks between the call of allocate() and the call of free()
  StatisticByPool segment;          // segments that are not expandable
  StatisticByPool active;           // blocks that at least one stream may still use
  StatisticByPool inactive_split;   // free blocks of partly used segments that are not expandable
  StatisticByPool allocated_bytes;  // torch.cuda.memory_allocated
  StatisticByPool reserved_bytes;   // torch.cuda.memory_reserved
  StatisticByPool active_bytes;     // bytes of the active blocks
  StatisticByPool inactive_split_bytes;
  StatisticByPool requested_bytes;  // requested sizes of the active blocks, before rounding
  Statistic oversize_allocations;   // blocks too large to be split
  Statistic oversize_segments;
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
  int64_t num_sync_all_streams = 0;
  int64_t num_device_alloc = 0;  // segments allocated and ranges mapped
  int64_t num_device_free = 0;

  bool operator==(const AllocatorStatistics&) const = default;
};

// Calls `visit(Statistic&)` for each statistic in the order of the members.
template <class Statistics, class Visit>
void for_each(Statistics& all, Visit visit) {
  for (auto* by_pool : {&all.allocation, &all.segment, &all.active, &all.inactive_split, &all.allocated_bytes,
                        &all.reserved_bytes, &all.active_bytes, &all.inactive_split_bytes, &all.requested_bytes}) {
    for (auto& statistic : *by_pool) visit(statistic);
  }
  visit(all.oversize_allocations);
  visit(all.oversize_segments);
}

}  // namespace fxopt
