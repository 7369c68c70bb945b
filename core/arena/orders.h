#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/arena/problem.h"

namespace fxopt::arena {

// An order of all blocks, by index: among candidates, the earliest block is placed first.
using Order = std::vector<uint32_t>;

enum class OrderKind { kLifetime, kSize, kArea, kLoad, kLoadLifetime };
// First the orders that gave the lowest skylines on large problems.
inline constexpr std::array kAllOrders{OrderKind::kLoadLifetime, OrderKind::kArea, OrderKind::kSize, OrderKind::kLoad,
                                       OrderKind::kLifetime};

// Sorts the blocks, largest first: by sections alive, size, their product, or the largest load of a
// section in which the block is alive (then by product, or by sections alive). Ties are broken by
// the other measures, then by index. O(n log n + sections).
Order make_order(const Problem& problem, OrderKind kind);

}  // namespace fxopt::arena
