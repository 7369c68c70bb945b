#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

// Flat hash tables, for tables that grow with the graph, where a node per entry would cost a cache
// miss per look-up. Look up only, never iterate: the order of entries is undefined.

namespace fxopt {

template <class Key, class T, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using HashMap = tsl::robin_map<Key, T, Hash, Equal>;

// Keeps 32 bits of each hash beside the entry, for keys that are slow to compare.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using HashSet = tsl::robin_set<Key, Hash, Equal, std::allocator<Key>, true>;

}  // namespace fxopt
