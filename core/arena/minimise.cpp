// Implements HeightSearch, which restarts search_packing() with different capacities.
#include <algorithm>
#include <array>
#include <utility>

#include "core/arena/search.h"

namespace fxopt::arena {
namespace {

constexpr int64_t kShortest = 1'000'000;  // steps of the shortest search
constexpr std::array kKinds{OrderKind::kLifetime, OrderKind::kLoad, OrderKind::kLoadLifetime, OrderKind::kArea};

// Returns element `i` of the sequence 1 1 2 1 1 2 4 ..., which starts at `i` = 1. Restarts of these
// lengths take at most a logarithmic factor longer than restarts of the best lengths (Luby,
// Sinclair and Zuckerman 1993).
int64_t luby(int64_t i) {
  int64_t power = 1;
  while (2 * power <= i + 1) power *= 2;
  return power == i + 1 ? power / 2 : luby(i - power + 1);
}

}  // namespace

HeightSearch::HeightSearch(const Problem& problem, int64_t target)
    : problem_(problem), weights_(problem.sections), impossible_(target - 1), failed_(target - 1) {
  for (const OrderKind kind : kKinds) orders_.push_back(make_order(problem, kind));
}

// Returns the plain orders first, and later orders whose blocks are moved by a few positions.
Order HeightSearch::next_order() {
  Order order = orders_[static_cast<size_t>(searches_ % std::ssize(kKinds))];
  const auto disturbed = static_cast<uint64_t>(searches_ / std::ssize(kKinds));
  if (disturbed == 0) return order;
  const uint64_t reach = 1 + disturbed % 5 * 2;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    std::swap(order[i], order[std::min<size_t>(order.size() - 1, i + random_() % reach)]);
  }
  return order;
}

Verdict HeightSearch::search(int64_t capacity, Budget& budget, std::vector<int64_t>& offsets) {
  while (budget.left() > 0) {
    const int64_t turn = searches_ / std::ssize(kKinds);
    const int64_t length = std::min(kShortest * luby(turn + 1), budget.left());
    const SectionRule rule = turn % 2 == 0 ? SectionRule::kHeaviest : SectionRule::kFewestPerWeight;
    Budget some(length);
    const Verdict verdict = search_packing(problem_, next_order(), rule, capacity, weights_, some, offsets);
    ++searches_;
    const auto n = static_cast<int64_t>(problem_.blocks.size());
    budget.spend(length - some.left() + n * n);  // n^2 for the neighbour tables
    if (verdict != Verdict::kUnknown) return verdict;
  }
  return Verdict::kUnknown;
}

bool HeightSearch::run(Budget& budget, Packing& packing) {
  while (packing.height > impossible_ + 1 && budget.left() > 0) {
    const int64_t steps = first_ ? budget.left() : std::min(std::max(budget.left() / 8, kShortest), budget.left());
    // The guess is halfway between the last failed height and the best known height. When these
    // heights meet, the guess is again the lowest possible height.
    int64_t guess = first_ ? impossible_ + 1 : failed_ + (packing.height - failed_) / 2;
    if (guess <= failed_ || guess >= packing.height) guess = impossible_ + 1;
    first_ = false;
    Budget some(steps);
    std::vector<int64_t> offsets;
    const Verdict verdict = search(guess, some, offsets);
    budget.spend(std::max(steps - some.left(), int64_t{1}));
    if (verdict == Verdict::kFound) {
      packing.offsets = std::move(offsets);
      packing.height = height_of(problem_, packing.offsets);
    } else {
      failed_ = guess;
    }
    if (verdict == Verdict::kImpossible) impossible_ = guess;
  }
  return packing.height <= impossible_ + 1;
}

}  // namespace fxopt::arena
