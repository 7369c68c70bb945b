#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/arena/problem.h"

namespace fxopt::arena {

// An order of all blocks, given by their indices: which goes first where several could.
using Order = std::vector<uint32_t>;

enum class OrderKind { kLifetime, kSize, kArea, kLoad, kLoadLifetime };
// The ones that made the lowest skylines of large problems first.
inline constexpr std::array kAllOrders{OrderKind::kLoadLifetime, OrderKind::kArea, OrderKind::kSize, OrderKind::kLoad,
                                       OrderKind::kLifetime};

// Largest first by sections alive, size, their product, or the largest load of a section the block is alive in (then by
// product, or by sections alive); ties by the other measures, then by index. O(n log n + sections).
Order make_order(const Problem& problem, OrderKind kind);

}  // namespace fxopt::arena
