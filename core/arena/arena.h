#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fxopt {

// An amount of memory that is live at every step from `first` to `last`, both included. `first` is
// at most `last`, and `bytes` is at least 0.
struct ArenaItem {
  int64_t first = 0;
  int64_t last = 0;
  int64_t bytes = 0;
};

struct ArenaOptions {
  // Offsets and rounded sizes are multiples of this number, which is at least 1.
  int64_t alignment = 512;
  // Limit of the number of search steps. A step takes about 1 ns. 0 allows only the fast
  // heuristics.
  int64_t effort = 3'000'000'000;
};

struct ArenaPlan {
  // The offset of each item, a multiple of the alignment. Items of 0 bytes have offset 0.
  std::vector<int64_t> offsets;
  int64_t bytes = 0;            // size of the arena: the largest end of an item of rounded size
  int64_t lower_bound = 0;      // largest sum of the rounded sizes that are live at one step
  int64_t unaligned_bound = 0;  // lower bound for unrounded sizes, which other authors publish
  std::string_view method;      // name of the method that found the plan; static storage
  // True if no smaller arena exists. In this case, the plan meets the lower bound, or the search
  // excluded all smaller sizes.
  bool optimal = false;
};

// Plans an offset for each item, in the smallest arena that the search finds. The same input gives
// the same plan on every machine. Returns nullopt if the sum of the rounded sizes needs more than
// 62 bits. Throws InternalError if the items or options are invalid. O(n log^2 n), plus the search
// that `effort` allows.
std::optional<ArenaPlan> plan_arena(std::span<const ArenaItem> items, const ArenaOptions& options);

}  // namespace fxopt
