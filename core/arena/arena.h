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
  int64_t alignment = 512;         // of every offset and of the room of every item; at least 1
  int64_t effort = 3'000'000'000;  // bound on the steps of the searches, about 1 ns each; 0: only the fast heuristics
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // one for each item, multiples of the alignment; 0 for items of 0 bytes
  int64_t bytes = 0;             // of the arena: the largest end of an item, its size rounded up to the alignment
  int64_t lower_bound = 0;       // the largest sum of rounded sizes alive together: no arena is smaller
  int64_t unaligned_bound = 0;   // the same of sizes as they are, the bound that other work publishes
  std::string_view method;       // what found the plan; static storage
  bool optimal = false;          // no smaller arena exists: it meets the bound, or all below was searched
};

// Offsets for items, as low in sum as could be found. The same input gives the same plan on every machine. Nothing when
// the rounded sizes sum to more than 62 bits hold. O(n log^2 n) and what `effort` allows. Breaking the rules on items
// or options is an InternalError.
std::optional<ArenaPlan> plan_arena(std::span<const ArenaItem> items, const ArenaOptions& options);

}  // namespace fxopt
