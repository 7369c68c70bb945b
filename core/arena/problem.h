#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arena/arena.h"

namespace fxopt::arena {

// An item in the search's terms. Time is cut into sections, one for each set of items alive together that no other such
// set contains, in order of time: two items are alive together exactly when they share a section. Sizes are in units.
struct Block {
  int32_t begin = 0;  // sections [begin, end)
  int32_t end = 0;
  int64_t size = 0;  // above 0
};

struct Problem {
  std::vector<Block> blocks;
  int32_t sections = 0;
};

// An offset for each block, and the height they reach.
struct Packing {
  std::vector<int64_t> offsets;
  int64_t height = 0;
};

// Counts the steps of a search down. Deterministic where a clock is not.
class Budget {
 public:
  explicit Budget(int64_t steps) : left_(steps) {}
  // False when it is used up.
  bool spend(int64_t steps) {
    left_ -= steps;
    return left_ >= 0;
  }
  int64_t left() const { return left_ > 0 ? left_ : 0; }

 private:
  int64_t left_;
};

// Sections for the given intervals, both ends included: gives each block its begin and end. O(n log n).
int32_t number_sections(std::span<const ArenaItem> items, std::span<const uint32_t> chosen, std::vector<Block>& blocks);

// The sum of sizes in each section. O(n + sections).
std::vector<int64_t> section_loads(const Problem& problem);

// The height of these offsets. O(n).
int64_t height_of(const Problem& problem, std::span<const int64_t> offsets);

// A part of a problem that can be planned alone, above `base`.
struct Part {
  Problem problem;
  std::vector<uint32_t> members;  // index in the whole of each block
  int64_t base = 0;
};

// Cuts a problem where no block crosses from one section to the next, lays blocks that are alive in all of a piece at
// its bottom (some best packing has them there: what lay below goes above), and goes on with what is left. Blocks laid
// down get their offset here, the others belong to one part each. O(n log n): it stops early where pieces are nested
// deeply.
std::vector<Part> split_problem(const Problem& problem, std::vector<int64_t>& offsets);

}  // namespace fxopt::arena
