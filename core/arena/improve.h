#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/arena/heuristics.h"
#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// Packs the blocks repeatedly with SkylineFiller. If the top of a block is above a limit, the order
// for the next packing has this block at an earlier position. The limit is a random height between
// the target and the height of the packing. This is squeaky wheel optimization (Joslin and Clements
// 1999).
class OrderSearch {
 public:
  explicit OrderSearch(const Problem& problem) : problem_(problem), filler_(problem) {}

  // Improves each of several orders for a while, and then only the best order. Stops if the height
  // of a packing is at most `target`, or if the budget ends. If the lowest packing found is lower
  // than `packing`, replaces `packing` and returns true. Otherwise returns false.
  bool run(int64_t target, Budget& budget, Packing& packing);

 private:
  // An order, and the packing that the filler makes from the order.
  struct Attempt {
    Order order;
    Packing packing;
  };

  void improve(int64_t target, Budget& budget, Attempt& attempt);
  Order blame(const Attempt& attempt, int64_t limit);

  const Problem& problem_;
  SkylineFiller filler_;
  std::vector<Attempt> best_;  // the best attempt of each kind of order
  std::mt19937_64 random_{1};
};

}  // namespace fxopt::arena
