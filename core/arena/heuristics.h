#pragma once

#include <cstdint>
#include <memory>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// Stacks blocks on a skyline, which is the height of the placed blocks in each section of time (see
// Block). A place is a maximal range of sections of equal height. The filler repeats these steps
// until all blocks are placed:
//   - Select the lowest place.
//   - Put the first unplaced block that fits onto this place. "First" refers to the given order. A
//     block fits if all its sections are within the place.
//   - If no block fits, raise the place to the height of its lower neighbour.
//
// This is the best-fit method for strip packing (Burke, Kendall and Whitwell 2004). Its application
// to memory comes from Sekiyama and others (2018).
class SkylineFiller {
 public:
  // Builds a k-d tree of the blocks. O(n log n).
  explicit SkylineFiller(const Problem& problem);
  ~SkylineFiller();

  // Usually takes about O(n log^2 n), and O(n sqrt(n)) in the worst case.
  Packing fill(const Order& order);

  // Returns the number of steps that one call of fill() takes from a Budget. A step is about a
  // nanosecond.
  int64_t steps() const;

 private:
  class BlockTree;
  const Problem& problem_;
  std::unique_ptr<BlockTree> tree_;
};

// Visits the sections of time in order, as an allocator would. In each section, first frees the
// space of the blocks that have ended. Then puts each block that begins now into the smallest free
// gap that is large enough. Blocks of one section are placed in the given order. If `backward` is
// true, visits the sections from the last to the first. O(n log n).
Packing sweep_best_fit(const Problem& problem, const Order& order, bool backward);

}  // namespace fxopt::arena
