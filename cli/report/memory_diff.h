#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/report/memory.h"

namespace fxopt {

// One storage that is live at a peak on one of two sides, or on both.
struct StorageChange {
  StorageRow row;      // of the later side, or of the earlier one when it is gone
  int64_t before = 0;  // bytes; 0: it is new
  int64_t after = 0;   // 0: it is gone

  int64_t growth() const { return after - before; }
};

// The storages of two live sets laid over each other, by the first of these that finds a partner: the same node; the
// same module, operator, type and class; the same without the type. Those that changed, most growth first, ties in the
// order of the later side, then of the earlier one. O(n log n).
std::vector<StorageChange> compare_storages(std::span<const StorageRow> before, std::span<const StorageRow> after);

// "%mm_4 (bf16[4096, 8192], saved value, layers.0.feed_forward.w1): 64.00 MiB (67108864 B) -> 66.00 MiB (...)".
std::string change_text(const StorageChange& change);

}  // namespace fxopt
