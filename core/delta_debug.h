#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace fxopt {

// Finds a small remainder of a list by delta debugging: tries to remove all of it, then halves,
// then halves of those, down to single items, each time from the end of the list. Single items are
// tried until none can be removed.
//
// Items are numbered from 0 to `count`. `remove` gets items that are present, ascending, and
// returns true if it removed them. `is_there` is queried after each removal, because a removal may
// take other items along.
//
// Returns the remaining items, ascending. Calls `remove` at most about 2 * count times if nothing
// can be removed, and about k * log2(count) times if all but k items can.
std::vector<size_t> delta_debug(size_t count, const std::function<bool(const std::vector<size_t>&)>& remove,
                                const std::function<bool(size_t)>& is_there);

}  // namespace fxopt
