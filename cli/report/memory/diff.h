#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// A storage whose bytes differ between an earlier and a later schedule at the same place. The
// pointers refer to the tables of both sides.
struct StorageChange {
  // The table and the entry of the storage on the later side. If the storage no longer exists
  // there, the table and the entry on the earlier side.
  const StorageTable* table = nullptr;
  const StorageEntry* entry = nullptr;
  int64_t before = 0;  // bytes at the place; 0 if the storage was not live there
  int64_t after = 0;   // 0 if the storage is no longer live there
  // The table and the entry of the earlier side, if the earlier side has the storage but it was not
  // live at the place. Otherwise null.
  const StorageTable* was_in = nullptr;
  const StorageEntry* was = nullptr;

  int64_t growth() const { return after - before; }
  StorageRow row() const { return table->row(*entry); }
};

// The comparison of two live sets at one place.
struct LiveSetChange {
  // The largest growth comes first. Changes with equal growth keep the order of the later schedule,
  // then the order of the earlier schedule.
  std::vector<StorageChange> changes;
  bool moved = false;  // the earlier side has its peak at another place
};

// Compares the storages that are live at a peak of `after` with the storages that are live at the
// same place of `before`. No place of `before` uses more memory than its peak. The changes
// therefore include the growth of the peak, even if the peak has moved. `peak_before` and
// `peak_after` must be peaks of the same metric. The nodes of these peaks determine the places of
// the peaks.
//
// Each storage is paired by the first of these keys that finds a partner:
// - node, module, operator, type and label
// - module, operator, type and label
// - module, operator and label
// - node and label
//
// Storages with equal keys are paired in schedule order. The storage that `after` produces at its
// peak determines the place. The place of `before` is the place of this storage's partner. If the
// storage has no partner, the nearest earlier storage with a partner is used. Both sides must list
// every storage: see MemoryView::others. If `before` lists only the storages at its peak, the
// comparison is at that peak. O(n log n).
LiveSetChange compare_live_sets(const DeviceMemory& before, const PeakRow& peak_before, const DeviceMemory& after,
                                const PeakRow& peak_after);

// Returns text such as "%mm_4 (bf16[4096, 8192], saved value, layers.0.feed_forward.w1): 64.00 MiB
// (67108864 B) -> 66.00 MiB (...)".
std::string change_text(const StorageChange& change);

}  // namespace fxopt
