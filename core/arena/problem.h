#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arena/arena.h"

namespace fxopt::arena {

// An item in the form that the search uses. Time is divided into consecutive sections. A step
// begins a new section if an item starts at this step and another item of the current section has
// already ended. In the example below, step 4 begins section 1: item c starts at step 4, and item b
// has already ended.
//
//   step      0  1  2  3  4  5  6
//   item a    a  a  a  a  a  a  a
//   item b       b  b
//   item c                c  c  c
//   section   0  0  0  0  1  1  1
//
// All items of one section are live at one common step: the last step of the section at which an
// item starts. For each maximal set of items that are live at the same time, there is exactly one
// section. In the example, section 0 belongs to the set {a, b}, and section 1 to the set {a, c}.
// Two items share a section if and only if they are live at the same time. The unit of sizes is the
// greatest common divisor of all rounded sizes.
struct Block {
  // The block is live in the sections of time from `begin` up to, but not including, `end`.
  int32_t begin = 0;
  int32_t end = 0;
  int64_t size = 0;  // at least 1
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

// Counts down the steps of a search. Unlike a clock, a budget is deterministic.
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

// Divides time into sections for the items whose indices are in `chosen`. Sets `begin` and `end` of
// the block of each chosen item. Returns the number of sections. O(n log n).
int32_t number_sections(std::span<const ArenaItem> items, std::span<const uint32_t> chosen, std::vector<Block>& blocks);

// Returns the sum of the sizes of live blocks, for each section of time. O(n + sections).
std::vector<int64_t> section_loads(const Problem& problem);

// Returns the height of the packing with these offsets. O(n).
int64_t height_of(const Problem& problem, std::span<const int64_t> offsets);

// A part of a problem that can be planned on its own. The part begins at the offset `base` of the
// whole problem.
struct Part {
  Problem problem;
  // For each block of the part: the index of the block in the whole problem.
  std::vector<uint32_t> members;
  int64_t base = 0;
};

// Splits a problem into parts that can be planned independently. A piece is a range of sections,
// with the unplaced blocks that are live in these sections. The whole problem is the first piece.
// The function applies two steps to each piece:
// 1. Cut the piece wherever no block of the piece crosses from one section to the next. Each
//    resulting range of sections is a smaller piece.
// 2. In each smaller piece, find the blocks that are live throughout the piece. Place these blocks
//    at the bottom, above the blocks that were placed earlier in the same sections. Store the
//    offsets of these blocks in `offsets`, and remove these blocks from the piece.
//
// The function then applies both steps to the smaller pieces. If the steps neither cut a piece nor
// place a block, the function returns the piece as one Part. O(n log n), because the function
// returns deeply nested pieces without further cuts.
//
// At least one packing of the smallest height has all placed blocks at their offsets. The reason:
// in any packing, a block B that is live throughout a piece can move to the bottom of the piece.
// Each block of the piece that was below B moves up by the size of B. The height of the packing
// does not increase.
std::vector<Part> split_problem(const Problem& problem, std::vector<int64_t>& offsets);

}  // namespace fxopt::arena
