#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fxopt {

// A piece of memory that is live at each time step from `first` to `last`, both included. `first`
// is at most `last`, and `bytes` is at least 0.
struct ArenaItem {
  int64_t first = 0;
  int64_t last = 0;
  int64_t bytes = 0;
};

struct ArenaOptions {
  // At least 1. Offsets are multiples of this number, and sizes are rounded up to multiples.
  int64_t alignment = 512;
  // Limit of the number of search steps. A step takes about 1 ns. 0 allows only the fast
  // heuristics.
  int64_t effort = 3'000'000'000;
};

struct ArenaPlan {
  // The offset of each item, a multiple of the alignment. Items of 0 bytes have offset 0.
  std::vector<int64_t> offsets;
  int64_t bytes = 0;  // size of the arena: the largest sum of offset and rounded size
  // The sum of the rounded sizes of all live items, at the time step with the largest sum. No arena
  // can be smaller.
  int64_t lower_bound = 0;
  // Like `lower_bound`, but computed from the sizes before rounding. Research papers on memory
  // planning use this bound.
  int64_t unaligned_bound = 0;
  std::string_view method;  // method that found the plan; refers to a string literal
  // True if the plan is proved to be the smallest. Either `bytes` equals the lower bound, or the
  // search excluded all smaller sizes.
  bool optimal = false;
};

// Plans an offset for each item, in the smallest arena that the search finds. The same input gives
// the same plan on every machine. Returns nullopt if the sum of the rounded sizes needs more than
// 62 bits. Throws InternalError if the items or options are invalid. O(n log^2 n), plus the search
// that `effort` allows.
std::optional<ArenaPlan> plan_arena(std::span<const ArenaItem> items, const ArenaOptions& options);

}  // namespace fxopt
