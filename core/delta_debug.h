#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace fxopt {

// Reduces a list by delta debugging. First tries to remove the whole list, then its halves, then
// halves of those halves, and so on down to single items. Each round starts at the end of the list.
// The round of single items is repeated until no item can be removed.
//
// Items are numbered from 0 to `count` - 1. `remove` gets items that are present, in ascending
// order, and returns true if it removed them. `is_there` is called after each removal, because a
// removal may remove further items.
//
// Returns the remaining items in ascending order. If nothing can be removed, calls `remove` at most
// about 2 * count times. If exactly k items must remain, calls `remove` about k * log2(count)
// times.
std::vector<size_t> delta_debug(size_t count, const std::function<bool(const std::vector<size_t>&)>& remove,
                                const std::function<bool(size_t)>& is_there);

}  // namespace fxopt
