#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/memory/report.h"

namespace fxopt {

// The change of one storage from an earlier graph to a later graph, the two sides of a comparison.
// A place is a position in a schedule. compare_live_sets() chooses a place in each schedule, so
// that the two places match. The storage has different live bytes at these two places. The pointers
// refer to the tables of both sides.
struct StorageChange {
  // `table` is the later side's table, and `entry` is the storage's entry in this table. If the
  // storage is not live at the place of the later side, both pointers refer to the earlier side:
  // `table` is the earlier side's table, and `entry` is the storage's entry in that table.
  const StorageTable* table = nullptr;
  const StorageEntry* entry = nullptr;
  int64_t before = 0;  // live bytes at the place of the earlier side; 0 if the storage is not live
  int64_t after = 0;   // live bytes at the place of the later side; 0 if the storage is not live
  // The earlier graph may have the storage, although the storage is not live at the place of the
  // earlier side. In this case, `before` is 0. `was_in` is the earlier side's table, and `was` is
  // the storage's entry in that table. In any other case, both pointers are null.
  const StorageTable* was_in = nullptr;
  const StorageEntry* was = nullptr;

  int64_t growth() const { return after - before; }
  StorageRow row() const { return table->row(*entry); }
};

// The changes from the storages that are live in an earlier graph to the storages that are live in
// a later graph. The two graphs are compared at matching places (schedule positions).
struct LiveSetChange {
  // The changes, largest growth first. If several changes have equal growth, they have this order:
  // - First come storages that are live at the place of the later side, in schedule order of the
  //   later graph.
  // - All other storages follow, in schedule order of the earlier graph.
  std::vector<StorageChange> changes;
  // True if the peaks of the two graphs are not at matching places.
  bool moved = false;
};

// Compares the storages that are live at a peak of `after` with the storages that are live at the
// matching place of `before`. `peak_before` and `peak_after` must be peaks of the same metric.
// PeakRow::node is the node of a peak. The place of the peak is the place at which this node
// allocates memory. If the node allocates none, the place is DeviceMemory::position.
//
// DeviceMemory::bytes is the size of the ideal peak or of the requested peak: see
// DeviceMemory::model. For this peak, the sum of the changes is at least the growth of the peak:
//
//   sum of the changes  = (peak of `after`) - (live bytes of `before` at the matching place)
//                      >= (peak of `after`) - (peak of `before`)
//
// The live bytes of `before` at any place are at most its peak. The inequality therefore holds even
// if the peak of `before` is at another place. The inequality may be false for peaks of other
// metrics.
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
