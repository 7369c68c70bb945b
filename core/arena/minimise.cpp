// Restarts of the search at falling capacities.
#include <algorithm>
#include <array>
#include <utility>

#include "core/arena/search.h"

namespace fxopt::arena {
namespace {

constexpr int64_t kShortest = 1'000'000;  // steps of the shortest search
constexpr std::array kKinds{OrderKind::kLifetime, OrderKind::kLoad, OrderKind::kLoadLifetime, OrderKind::kArea};

// The sequence 1 1 2 1 1 2 4 ... of Luby, Sinclair and Zuckerman 1993: within a logarithm of the best lengths for
// restarts that nobody knows. i from 1.
int64_t luby(int64_t i) {
  int64_t power = 1;
  while (2 * power <= i + 1) power *= 2;
  return power == i + 1 ? power / 2 : luby(i - power + 1);
}

}  // namespace

HeightSearch::HeightSearch(const Problem& problem, int64_t target)
    : problem_(problem), weights_(problem.sections), impossible_(target - 1), guess_(target) {
  for (const OrderKind kind : kKinds) orders_.push_back(make_order(problem, kind));
}

// The plain orders first, then with blocks moved by a few places.
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
    budget.spend(std::max(length - some.left(), int64_t{1}));
    if (verdict != Verdict::kUnknown) return verdict;
  }
  return Verdict::kUnknown;
}

bool HeightSearch::run(Budget& budget, Packing& packing) {
  while (packing.height > impossible_ + 1 && budget.left() > 0) {
    const int64_t steps = first_ ? budget.left() : std::min(std::max(budget.left() / 8, kShortest), budget.left());
    first_ = false;
    Budget some(steps);
    std::vector<int64_t> offsets;
    guess_ = std::clamp(guess_, impossible_ + 1, packing.height - 1);
    const Verdict verdict = search(guess_, some, offsets);
    budget.spend(std::max(steps - some.left(), int64_t{1}));
    int64_t failed = guess_;
    if (verdict == Verdict::kFound) {
      packing.offsets = std::move(offsets);
      packing.height = height_of(problem_, packing.offsets);
      failed = impossible_;
    }
    if (verdict == Verdict::kImpossible) impossible_ = guess_;
    // Halves the way from what failed to what is known; from the bottom again where they meet.
    guess_ = failed + (packing.height - failed) / 2;
    if (guess_ <= failed) guess_ = impossible_ + 1;
  }
  return packing.height <= impossible_ + 1;
}

}  // namespace fxopt::arena
