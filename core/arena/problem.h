#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arena/arena.h"

namespace fxopt::arena {

// An item as the search sees it. Time is cut into sections in order of time: one section for each
// maximal set of items alive together. Two items are alive together exactly if they share a
// section. Sizes are in units.
struct Block {
  int32_t begin = 0;  // sections [begin, end)
  int32_t end = 0;
  int64_t size = 0;  // above 0
};

struct Problem {
  std::vector<Block> blocks;
  int32_t sections = 0;
};

// An offset for each block, and the resulting height.
struct Packing {
  std::vector<int64_t> offsets;
  int64_t height = 0;
};

// Counts down the steps of a search. Deterministic, unlike a clock.
class Budget {
 public:
  explicit Budget(int64_t steps) : left_(steps) {}
  // Returns false once the budget is used up.
  bool spend(int64_t steps) {
    left_ -= steps;
    return left_ >= 0;
  }
  int64_t left() const { return left_ > 0 ? left_ : 0; }

 private:
  int64_t left_;
};

// Numbers the sections of the given intervals (both ends included) and sets begin and end of each
// block. Returns the number of sections. O(n log n).
int32_t number_sections(std::span<const ArenaItem> items, std::span<const uint32_t> chosen, std::vector<Block>& blocks);

// Returns the sum of sizes in each section. O(n + sections).
std::vector<int64_t> section_loads(const Problem& problem);

// Returns the height of these offsets. O(n).
int64_t height_of(const Problem& problem, std::span<const int64_t> offsets);

// A part of a problem that can be planned on its own, above `base`.
struct Part {
  Problem problem;
  std::vector<uint32_t> members;  // index of each block in the whole problem
  int64_t base = 0;
};

// Cuts a problem wherever no block crosses from one section to the next. Blocks that are alive
// throughout a piece are placed at its bottom (some best packing has them there: blocks below them
// can move above), and the rest is cut further. Blocks placed so get their offset here; each other
// block belongs to one part. O(n log n): deeply nested pieces are not cut further.
std::vector<Part> split_problem(const Problem& problem, std::vector<int64_t>& offsets);

}  // namespace fxopt::arena
