#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/arena/arena.h"

namespace fxopt {

// Two items that are live together and share bytes, by index; `a` is below `b`.
struct ArenaOverlap {
  size_t a = 0;
  size_t b = 0;
};

// Returns an overlap of the offsets, or nothing if all are disjoint. Does not check alignment.
// Shares no code with plan_arena: it sweeps over the steps and keeps the live items by offset. O(n
// log n).
std::optional<ArenaOverlap> find_arena_overlap(std::span<const ArenaItem> items, std::span<const int64_t> offsets);

}  // namespace fxopt
