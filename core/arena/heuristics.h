#pragma once

#include <cstdint>
#include <memory>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// Fills the lowest place of the skyline, again and again, with the block that comes first in order of those whose
// sections all lie there; a place that none fits is raised to the lower of its neighbours (best fit of Burke, Kendall
// and Whitwell 2004 for strips, with Sekiyama et al. 2018 for memory).
class SkylineFiller {
 public:
  // Builds a k-d tree of the blocks. O(n log n).
  explicit SkylineFiller(const Problem& problem);
  ~SkylineFiller();

  // About O(n log^2 n); sqrt(n) for log^2 n in the worst case.
  Packing fill(const Order& order);

  // What a call costs a budget, about a nanosecond each.
  int64_t steps() const;

 private:
  class BlockTree;
  const Problem& problem_;
  std::unique_ptr<BlockTree> tree_;
};

// Goes through the sections as an allocator does: gives room free when blocks end and takes for each that begins, in
// order, the smallest free gap that holds it. `backward` goes from the last section to the first. O(n log n).
Packing sweep_best_fit(const Problem& problem, const Order& order, bool backward);

}  // namespace fxopt::arena
