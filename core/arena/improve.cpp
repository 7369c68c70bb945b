#include "core/arena/improve.h"

#include <algorithm>
#include <utility>

namespace fxopt::arena {
namespace {

constexpr int kPatience = 8;  // after this many orders without gain, return to the best order

}  // namespace

// Returns a changed copy of the order. Moves each block whose top is above `limit` to an earlier
// rank, by a random share of its rank. Moves about two random blocks as well.
Order OrderSearch::blame(const Attempt& attempt, int64_t limit) {
  const auto n = static_cast<uint64_t>(attempt.order.size());
  std::vector<std::pair<uint64_t, uint32_t>> keys;
  keys.reserve(n);
  for (uint64_t rank = 0; rank < n; ++rank) {
    const uint32_t block = attempt.order[rank];
    const bool blamed = attempt.packing.offsets[block] + problem_.blocks[block].size > limit;
    const bool moved = blamed || random_() % n < 2;
    // The key is twice the rank, plus 1 for a block that does not move. A moved block therefore
    // precedes the unmoved block at its new rank.
    keys.emplace_back(moved ? 2 * (rank - rank * (random_() % 64) / 64) : 2 * rank + 1, block);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Order order;
  order.reserve(n);
  for (const auto& [key, block] : keys) order.push_back(block);
  return order;
}

void OrderSearch::improve(int64_t target, Budget& budget, Attempt& attempt) {
  Attempt current = attempt;
  int without_gain = 0;
  while (attempt.packing.height > target && budget.spend(filler_.steps())) {
    // The limit is a random height between the target and the top. With the target as the limit,
    // nearly all blocks could move.
    const int64_t span = current.packing.height - target;
    const auto eighths = static_cast<int64_t>(random_() % 8);
    const int64_t limit = target + span / 8 * eighths + span % 8 * eighths / 8;
    current.order = blame(current, limit);
    current.packing = filler_.fill(current.order);
    if (current.packing.height <= attempt.packing.height) {
      if (current.packing.height < attempt.packing.height) without_gain = 0;
      attempt = current;
    } else if (++without_gain > kPatience) {
      without_gain = 0;
      current = attempt;
    }
  }
}

bool OrderSearch::run(int64_t target, Budget& budget, Packing& packing) {
  for (size_t i = best_.size(); i < kAllOrders.size() && budget.spend(filler_.steps()); ++i) {
    Attempt attempt{make_order(problem_, kAllOrders[i]), {}};
    attempt.packing = filler_.fill(attempt.order);
    best_.push_back(std::move(attempt));
  }
  if (best_.empty()) return false;
  const int64_t each = budget.left() / (2 * std::ssize(best_));
  const auto lower = [](const Attempt& a, const Attempt& b) { return a.packing.height < b.packing.height; };
  const auto go_on = [&](Attempt& attempt, int64_t steps) {
    Budget some(steps);
    improve(target, some, attempt);
    budget.spend(steps - some.left());
    return attempt.packing.height <= target;
  };
  if (std::none_of(best_.begin(), best_.end(), [&](Attempt& attempt) { return go_on(attempt, each); })) {
    go_on(*std::min_element(best_.begin(), best_.end(), lower), budget.left());
  }
  const Packing& lowest = std::min_element(best_.begin(), best_.end(), lower)->packing;
  if (lowest.height >= packing.height) return false;
  packing = lowest;
  return true;
}

}  // namespace fxopt::arena
