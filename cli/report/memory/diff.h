#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// One storage that takes other bytes at a place of a later schedule than it did at that place of an earlier one.
// Refers to the tables of both sides.
struct StorageChange {
  const StorageTable* table = nullptr;  // of the later side, or of the earlier one when it is gone
  const StorageEntry* entry = nullptr;
  int64_t before = 0;                    // bytes at the place; 0: it was not live there
  int64_t after = 0;                     // 0: it is not live there any more
  const StorageTable* was_in = nullptr;  // of the earlier side, where it existed but was not live at the place
  const StorageEntry* was = nullptr;

  int64_t growth() const { return after - before; }
  StorageRow row() const { return table->row(*entry); }
};

// Two live sets laid over each other at one place.
struct LiveSetChange {
  std::vector<StorageChange> changes;  // most growth first, ties in the order of the later schedule, then the earlier
  bool moved = false;                  // the place is not the one of the earlier side's peak
};

// What is live at a peak of `after`, against what was live at the same place of `before`: as no place of `before` had
// more than its peak, what a peak has grown by is among these changes, wherever either peak is. The two peaks of one
// metric are given by their nodes.
//
// Storages are one when they agree in the first of these that finds a partner: node, module, operator, type and label;
// all of it but the node; all but node and type; node and label. Nodes of equal keys are paired in schedule order. The
// place is found by the storage made there, or by the nearest one before it that has a partner. Both sides list all
// storages (MemoryView::others); one that lists its peak alone is compared at its peak. O(n log n).
LiveSetChange compare_live_sets(const DeviceMemory& before, const PeakRow& peak_before, const DeviceMemory& after,
                                const PeakRow& peak_after);

// "%mm_4 (bf16[4096, 8192], saved value, layers.0.feed_forward.w1): 64.00 MiB (67108864 B) -> 66.00 MiB (...)".
std::string change_text(const StorageChange& change);

}  // namespace fxopt
