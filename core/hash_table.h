#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

// Flat hash tables, which store all entries in one array. Use them if the number of entries grows
// with the graph. A table with one heap node for each entry would cost a cache miss for each
// look-up. Never iterate over these tables, because the order of their entries is undefined.

namespace fxopt {

template <class Key, class T, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using HashMap = tsl::robin_map<Key, T, Hash, Equal>;

// A hash set for keys that are slow to compare. It stores 32 bits of each hash beside the entry.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using HashSet = tsl::robin_set<Key, Hash, Equal, std::allocator<Key>, true>;

}  // namespace fxopt
