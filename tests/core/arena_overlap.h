#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/arena/arena.h"

namespace fxopt {

// The indices of two items that are live together and share bytes. `a` is below `b`.
struct ArenaOverlap {
  size_t a = 0;
  size_t b = 0;
};

// Returns two items that overlap, or nothing if all items are disjoint. Does not check alignment.
// This function does not share code with plan_arena(). It sweeps over the steps and keeps the live
// items sorted by offset. O(n log n).
std::optional<ArenaOverlap> find_arena_overlap(std::span<const ArenaItem> items, std::span<const int64_t> offsets);

}  // namespace fxopt
