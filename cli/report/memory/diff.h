#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// A storage whose live bytes differ between two sides, an earlier and a later graph, at matching
// places of their schedules. A place is a position in a schedule. The pointers refer to the tables
// of both sides.
struct StorageChange {
  // The table and the entry of the storage on the later side. If the storage is not live there, the
  // table and the entry on the earlier side.
  const StorageTable* table = nullptr;
  const StorageEntry* entry = nullptr;
  int64_t before = 0;  // live bytes at the place of the earlier side; 0 if the storage is not live
  int64_t after = 0;   // live bytes at the place of the later side; 0 if the storage is not live
  // The earlier graph may have the storage, but the storage may not be live at the earlier side's
  // place. In this case, `was_in` is the earlier side's table, and `was` is the storage's entry in
  // that table. Otherwise, both pointers are null.
  const StorageTable* was_in = nullptr;
  const StorageEntry* was = nullptr;

  int64_t growth() const { return after - before; }
  StorageRow row() const { return table->row(*entry); }
};

// The changes from the storages that are live in an earlier graph to the storages that are live in
// a later graph. The two graphs are compared at matching places (schedule positions).
struct LiveSetChange {
  // The largest growth comes first. Changes with equal growth keep the order of the later schedule,
  // then the order of the earlier schedule.
  std::vector<StorageChange> changes;
  // True if the peaks of the two graphs are not at matching places.
  bool moved = false;
};

// Compares the storages that are live at a peak of `after` with the storages that are live at the
// matching place of `before`. At this place, `before` uses at most as many bytes as at its peak.
// The sum of the changes is therefore at least the growth of the peak, even if the peak has moved.
// `peak_before` and `peak_after` must be peaks of the same metric. The place of a peak is the place
// at which the node of its PeakRow allocates memory.
//
// Each storage is paired by the first of these keys that finds a partner:
// - node, module, operator, type and label
// - module, operator, type and label
// - module, operator and label
// - node and label
//
// Storages with equal keys are paired in schedule order. The matching place in `before` is found as
// follows. At its peak, `after` allocates a storage. The matching place is the place at which
// `before` allocates the partner of this storage. If the storage has no partner, the nearest
// earlier storage of `after` with a partner is used instead. Both sides must list every storage:
// see MemoryView::others. If `before` lists only the storages at its peak, the peak of `before` is
// used as the matching place. O(n log n).
LiveSetChange compare_live_sets(const DeviceMemory& before, const PeakRow& peak_before, const DeviceMemory& after,
                                const PeakRow& peak_after);

// Returns text such as "%mm_4 (bf16[4096, 8192], saved value, layers.0.feed_forward.w1): 64.00 MiB
// (67108864 B) -> 66.00 MiB (...)".
std::string change_text(const StorageChange& change);

}  // namespace fxopt
