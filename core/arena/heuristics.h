#pragma once

#include <cstdint>
#include <memory>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// Repeatedly fills the lowest place of the skyline. In the given order, the filler takes the first
// block whose sections are all within that place. If no block fits, the filler raises the place to
// the height of the lower neighbour. This is the best-fit method of Burke, Kendall and Whitwell
// 2004 for strip packing. Sekiyama et al. 2018 apply it to memory.
class SkylineFiller {
 public:
  // Builds a k-d tree of the blocks. O(n log n).
  explicit SkylineFiller(const Problem& problem);
  ~SkylineFiller();

  // Usually takes about O(n log^2 n), and O(n sqrt(n)) in the worst case.
  Packing fill(const Order& order);

  // Returns the cost of one fill in steps of a Budget. A step is about a nanosecond.
  int64_t steps() const;

 private:
  class BlockTree;
  const Problem& problem_;
  std::unique_ptr<BlockTree> tree_;
};

// Walks the sections as an allocator would. In each section, frees the space of the blocks that
// end. Then puts each block that begins into the smallest free gap that is large enough. Blocks are
// placed in the given order. If `backward` is true, walks from the last section to the first.
// O(n log n).
Packing sweep_best_fit(const Problem& problem, const Order& order, bool backward);

}  // namespace fxopt::arena
