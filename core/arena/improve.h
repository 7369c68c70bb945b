#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/arena/heuristics.h"
#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// Fills the skyline again and again with orders in which the blocks that stood out above the target come earlier
// (squeaky wheel optimization, Joslin and Clements 1999).
class OrderSearch {
 public:
  explicit OrderSearch(const Problem& problem) : problem_(problem), filler_(problem) {}

  // Goes on, from several orders for a while and then from the best of them, until a packing meets the target or the
  // budget ends; `packing` becomes the lowest. True when it became lower.
  bool run(int64_t target, Budget& budget, Packing& packing);

 private:
  // An order and what the filler makes of it.
  struct Attempt {
    Order order;
    Packing packing;
  };

  void improve(int64_t target, Budget& budget, Attempt& attempt);
  Order blame(const Attempt& attempt, int64_t limit);

  const Problem& problem_;
  SkylineFiller filler_;
  std::vector<Attempt> best_;  // of each kind of order
  std::mt19937_64 random_{1};
};

}  // namespace fxopt::arena
