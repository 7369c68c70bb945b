#pragma once

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// An order and what fill_skyline makes of it.
struct Attempt {
  Order order;
  Packing packing;
};

// Fills the skyline again with orders in which the blocks that stood out above the target come earlier (squeaky wheel
// optimization, Joslin and Clements 1999), from the best order so far, until it meets the target or the budget ends.
// `attempt` becomes the lowest.
void improve_order(const Problem& problem, int64_t target, Budget& budget, Attempt& attempt);

}  // namespace fxopt::arena
