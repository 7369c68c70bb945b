#include "tests/core/arena_overlap.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/check.h"

namespace fxopt {
namespace {

ArenaOverlap in_order(size_t a, size_t b) { return {std::min(a, b), std::max(a, b)}; }

}  // namespace

std::optional<ArenaOverlap> find_arena_overlap(std::span<const ArenaItem> items, std::span<const int64_t> offsets) {
  FXOPT_CHECK(items.size() == offsets.size(), "one offset for each item");
  std::vector<size_t> begins;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].bytes > 0) begins.push_back(i);
  }
  std::vector<size_t> ends = begins;
  std::sort(begins.begin(), begins.end(),
            [&](size_t a, size_t b) { return std::pair(items[a].first, a) < std::pair(items[b].first, b); });
  std::sort(ends.begin(), ends.end(),
            [&](size_t a, size_t b) { return std::pair(items[a].last, a) < std::pair(items[b].last, b); });
  std::map<int64_t, size_t> live;  // disjoint items: only neighbours can overlap a new one
  size_t next_end = 0;
  for (const size_t i : begins) {
    for (; items[ends[next_end]].last < items[i].first; ++next_end) live.erase(offsets[ends[next_end]]);
    const auto above = live.lower_bound(offsets[i]);
    if (above != live.end() && above->first - offsets[i] < items[i].bytes) return in_order(i, above->second);
    if (above != live.begin()) {
      const auto [offset, below] = *std::prev(above);
      if (offsets[i] - offset < items[below].bytes) return in_order(i, below);
    }
    live.emplace(offsets[i], i);
  }
  return std::nullopt;
}

}  // namespace fxopt
