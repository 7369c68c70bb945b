#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace fxopt {

// Finds how much of a list can go, by delta debugging: all of it first, then halves, then halves of those, down to
// single items, each time the last of the list first; single items are tried until none can go.
//
// Items are numbered from 0 to `count`. `remove` is given items that are there, ascending, and returns true when it has
// removed them. `is_there` is asked after each removal, because a removal may take other items along.
//
// Returns the items that are left, ascending. Calls `remove` at most about 2 * count times when nothing can go, and
// about k * log2(count) times when all but k items can.
std::vector<size_t> delta_debug(size_t count, const std::function<bool(const std::vector<size_t>&)>& remove,
                                const std::function<bool(size_t)>& is_there);

}  // namespace fxopt
