#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fxopt {

// Memory that is live at every step in [first, last], both included. first <= last, bytes >= 0.
struct ArenaItem {
  int64_t first = 0;
  int64_t last = 0;
  int64_t bytes = 0;
};

struct ArenaOptions {
  int64_t alignment = 512;  // multiple of every offset and of every item's room; at least 1
  // bound on search steps, about 1 ns each; 0: fast heuristics only
  int64_t effort = 3'000'000'000;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // by item, multiples of the alignment; 0 for items of 0 bytes
  int64_t bytes = 0;             // largest end of an item, with rounded sizes
  int64_t lower_bound = 0;       // largest sum of rounded sizes alive together
  int64_t unaligned_bound = 0;   // the same bound of unrounded sizes, which other work publishes
  std::string_view method;       // name of the method that found the plan; static storage
  // no smaller arena exists: it meets the bound, or the search excluded all below
  bool optimal = false;
};

// Plans offsets for items in the smallest arena it can find. The same input gives the same plan on
// every machine. Returns nullopt if the rounded sizes sum to more than 62 bits hold. O(n log^2 n),
// plus the search that `effort` allows. Invalid items or options are an InternalError.
std::optional<ArenaPlan> plan_arena(std::span<const ArenaItem> items, const ArenaOptions& options);

}  // namespace fxopt
