#include "core/arena/improve.h"

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "core/arena/heuristics.h"

namespace fxopt::arena {
namespace {

constexpr int kPatience = 8;  // orders in a row without gain before it goes back to the best

// The order with each block that ends above `limit`, and some others, moved up by a random part of its rank.
Order blame(const Problem& problem, const Attempt& attempt, int64_t limit, std::mt19937_64& random) {
  const auto n = static_cast<uint64_t>(attempt.order.size());
  std::vector<std::pair<uint64_t, uint32_t>> keys;
  for (uint64_t rank = 0; rank < n; ++rank) {
    const uint32_t block = attempt.order[rank];
    const bool blamed = attempt.packing.offsets[block] + problem.blocks[block].size > limit;
    const bool moved = blamed || random() % n < 2;
    // Twice the rank, odd where it stays: what moves to a rank goes before what is there.
    keys.emplace_back(moved ? 2 * (rank - rank * (random() % 64) / 64) : 2 * rank + 1, block);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Order order;
  for (const auto& [key, block] : keys) order.push_back(block);
  return order;
}

}  // namespace

void improve_order(const Problem& problem, int64_t target, Budget& budget, Attempt& attempt) {
  constexpr int64_t kStepsPerLevel = 40;  // of a block in the tree: about a nanosecond each
  const auto steps = kStepsPerLevel * static_cast<int64_t>(attempt.order.size() * std::bit_width(attempt.order.size()));
  std::mt19937_64 random{1};
  Attempt current = attempt;
  int without_gain = 0;
  while (attempt.packing.height > target) {
    // Between the target and the top: blaming all that is too high would leave nothing where it is.
    const int64_t span = current.packing.height - target;
    const int64_t limit = target + span * static_cast<int64_t>(random() % 8) / 8;
    current.order = blame(problem, current, limit, random);
    if (!budget.spend(steps)) return;
    current.packing = fill_skyline(problem, current.order);
    if (current.packing.height <= attempt.packing.height) {
      if (current.packing.height < attempt.packing.height) without_gain = 0;
      attempt = current;
    } else if (++without_gain > kPatience) {
      without_gain = 0;
      current = attempt;
    }
  }
}

}  // namespace fxopt::arena
