#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/arena/arena.h"

namespace fxopt {

// Two items that are alive together and share bytes, by their indices, `a` below `b`.
struct ArenaOverlap {
  size_t a = 0;
  size_t b = 0;
};

// An overlap of the offsets, or nothing when there is none; offsets are not checked for alignment. Shares no code with
// plan_arena: a sweep over the steps that keeps the live items by offset. O(n log n).
std::optional<ArenaOverlap> find_arena_overlap(std::span<const ArenaItem> items, std::span<const int64_t> offsets);

}  // namespace fxopt
