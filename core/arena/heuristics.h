#pragma once

#include <cstdint>
#include <vector>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

// Fills the lowest place of the skyline, again and again, with the block that comes first in order of those whose
// sections all lie there; a place that none fits is raised to the lower of its neighbours (best fit of Burke, Kendall
// and Whitwell 2004 for strips, with Sekiyama et al. 2018 for memory). About O(n log^2 n).
Packing fill_skyline(const Problem& problem, const Order& order);

// Goes through the sections as an allocator does: gives room free when blocks end and takes for each that begins, in
// order, the smallest free gap that holds it. `backward` goes from the last section to the first. O(n log n).
Packing sweep_best_fit(const Problem& problem, const Order& order, bool backward);

}  // namespace fxopt::arena
