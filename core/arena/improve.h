#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/arena/heuristics.h"
#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// Fills the skyline repeatedly with orders in which the blocks that stood out above the target come
// earlier (squeaky wheel optimization, Joslin and Clements 1999).
class OrderSearch {
 public:
  explicit OrderSearch(const Problem& problem) : problem_(problem), filler_(problem) {}

  // Continues from several orders for a while and then from the best one, until a packing meets the
  // target or the budget ends. Replaces `packing` by the lowest found. Returns true if it became
  // lower.
  bool run(int64_t target, Budget& budget, Packing& packing);

 private:
  // An order and the filler's packing of it.
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
