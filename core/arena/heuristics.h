#pragma once

#include <cstdint>
#include <memory>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// Repeatedly fills the lowest place of the skyline with the first block in order whose sections are
// all within the place. A place that no block fits is raised to the lower of its neighbours (best
// fit of Burke, Kendall and Whitwell 2004 for strips, with Sekiyama et al. 2018 for memory).
class SkylineFiller {
 public:
  // Builds a k-d tree of the blocks. O(n log n).
  explicit SkylineFiller(const Problem& problem);
  ~SkylineFiller();

  // About O(n log^2 n); in the worst case sqrt(n) replaces log^2 n.
  Packing fill(const Order& order);

  // The budget cost of one fill, in steps of about a nanosecond.
  int64_t steps() const;

 private:
  class BlockTree;
  const Problem& problem_;
  std::unique_ptr<BlockTree> tree_;
};

// Walks the sections as an allocator would: frees the room of blocks that end, and gives each block
// that begins, in order, the smallest free gap that holds it. `backward` walks from the last
// section to the first. O(n log n).
Packing sweep_best_fit(const Problem& problem, const Order& order, bool backward);

}  // namespace fxopt::arena
