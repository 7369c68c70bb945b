#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// A storage whose bytes at a place of a later schedule differ from those at the same place of an
// earlier one. Refers to the tables of both sides.
struct StorageChange {
  // the later side's, or the earlier one's if the storage is gone
  const StorageTable* table = nullptr;
  const StorageEntry* entry = nullptr;
  int64_t before = 0;  // bytes at the place; 0: it was not live there
  int64_t after = 0;   // 0: it is no longer live there
  // of the earlier side, if it existed there but was not live at the place
  const StorageTable* was_in = nullptr;
  const StorageEntry* was = nullptr;

  int64_t growth() const { return after - before; }
  StorageRow row() const { return table->row(*entry); }
};

// The comparison of two live sets at one place.
struct LiveSetChange {
  std::vector<StorageChange> changes;  // most growth first, ties in the order of the later schedule, then the earlier
  bool moved = false;                  // the place is not the one of the earlier side's peak
};

// Compares the storages live at a peak of `after` with those live at the same place of `before`. No
// place of `before` had more than its peak, so these changes include the growth of the peak,
// wherever either peak is. The two peaks of one metric are given by their nodes.
//
// Storages are paired by the first of these keys that finds a partner: node, module, operator, type
// and label; the same without the node; without node and type; node and label. Nodes of equal keys
// are paired in schedule order. The place is found by the storage produced there, or by the nearest
// earlier one with a partner. Both sides list every storage (MemoryView::others); a side that lists
// only its peak is compared at its peak. O(n log n).
LiveSetChange compare_live_sets(const DeviceMemory& before, const PeakRow& peak_before, const DeviceMemory& after,
                                const PeakRow& peak_after);

// "%mm_4 (bf16[4096, 8192], saved value, layers.0.feed_forward.w1): 64.00 MiB (67108864 B) -> 66.00
// MiB (...)".
std::string change_text(const StorageChange& change);

}  // namespace fxopt
