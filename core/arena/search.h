#pragma once

#include <cstdint>
#include <vector>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

enum class Verdict { kFound, kImpossible, kUnknown };

// Looks for a packing no higher than `capacity`. Among blocks that fit at a place the first in order is tried first.
// kUnknown when the budget ends before the answer is known. Exponential in the worst case.
//
// Places are filled from the lowest up. At the lowest section of the skyline the choice is between the blocks that fit
// there and leaving it to be covered by what comes higher. A branch ends when some section cannot take what it still
// has to, or when a block could be let down later, which another branch has; parts that nothing joins any more are
// searched one by one. The canonical solutions and most of the reasons to end a branch are those of Moffitt 2023
// (MiniMalloc, ASPLOS, doi 10.1145/3623278.3624752); branching on one place, not on all blocks, is not.
Verdict search_packing(const Problem& problem, const Order& order, int64_t capacity, Budget& budget,
                       std::vector<int64_t>& offsets);

// Searches for packings lower than `packing`, down to `target`, by searches of growing length from several orders that
// are disturbed more and more: luck differs so much between orders that many short searches beat a long one. First at
// the target itself, then between it and what is known. True when nothing lower than the result, or than the target if
// it is higher, exists.
bool minimise_height(const Problem& problem, int64_t target, Budget& budget, Packing& packing);

}  // namespace fxopt::arena
