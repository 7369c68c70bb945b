#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/arena/problem.h"

namespace fxopt::arena {

// A list of the indices of all blocks. Among several candidates, the block that comes first in the
// list is placed first.
using Order = std::vector<uint32_t>;

enum class OrderKind { kLifetime, kSize, kArea, kLoad, kLoadLifetime };
// The kinds that gave the lowest packings of large problems come first.
inline constexpr std::array kAllOrders{OrderKind::kLoadLifetime, OrderKind::kArea, OrderKind::kSize, OrderKind::kLoad,
                                       OrderKind::kLifetime};

// Sorts the blocks by a measure. The block with the largest measure comes first. `kind` selects the
// measure:
//   - kLifetime: the number of sections in which the block is live
//   - kSize: the size
//   - kArea: the product of lifetime and size
//   - kLoad: the largest load (sum of sizes) of a section in which the block is live, then the area
//   - kLoadLifetime: the same load as for kLoad, then the lifetime
//
// If two blocks have the same measure, the other measures decide, and then the smaller index.
// O(n log n + sections).
Order make_order(const Problem& problem, OrderKind kind);

}  // namespace fxopt::arena
