// Restarts of the search at falling capacities.
#include <algorithm>
#include <array>
#include <random>

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

class Restarts {
 public:
  explicit Restarts(const Problem& problem) : problem_(problem), weights_(problem.sections) {
    for (const OrderKind kind : kKinds) orders_.push_back(make_order(problem, kind));
  }

  // Searches at one capacity for `steps` steps, going on where the last call ended.
  Verdict search(int64_t capacity, int64_t steps, Budget& budget, std::vector<int64_t>& offsets) {
    const int64_t reserve = budget.left() - std::min(steps, budget.left());
    while (budget.left() > reserve) {
      const int64_t length = std::min(kShortest * luby(round_ / std::ssize(kKinds) + 1), budget.left() - reserve);
      Budget some(length);
      const bool even = round_ / std::ssize(kKinds) % 2 == 0;
      const SectionRule rule = even ? SectionRule::kHeaviest : SectionRule::kFewestPerWeight;
      const Verdict verdict = search_packing(problem_, next_order(), rule, capacity, weights_, some, offsets);
      budget.spend(std::max(length - some.left(), int64_t{1}));
      if (verdict != Verdict::kUnknown) return verdict;
    }
    return Verdict::kUnknown;
  }

 private:
  // The plain orders first, then with blocks moved by a few places.
  Order next_order() {
    Order order = orders_[static_cast<size_t>(round_ % std::ssize(kKinds))];
    const auto disturbed = static_cast<uint64_t>(round_ / std::ssize(kKinds));
    ++round_;
    if (disturbed == 0) return order;
    const uint64_t reach = 1 + disturbed % 5 * 2;
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      std::swap(order[i], order[std::min<size_t>(order.size() - 1, i + random_() % reach)]);
    }
    return order;
  }

  const Problem& problem_;
  std::vector<Order> orders_;
  SectionWeights weights_;
  std::mt19937_64 random_{1};
  int64_t round_ = 0;
};

}  // namespace

bool minimise_height(const Problem& problem, int64_t target, Budget& budget, Packing& packing) {
  Restarts restarts(problem);
  int64_t impossible = target - 1;  // no packing is this low, or none so low is wanted
  int64_t guess = target;
  int64_t steps = budget.left() / 4;
  while (packing.height > impossible + 1 && budget.left() > 0) {
    std::vector<int64_t> offsets;
    const Verdict verdict = restarts.search(guess, steps, budget, offsets);
    int64_t failed = guess;
    if (verdict == Verdict::kFound) {
      packing.offsets = std::move(offsets);
      packing.height = height_of(problem, packing.offsets);
      failed = impossible;
    }
    if (verdict == Verdict::kImpossible) impossible = guess;
    // Halves the way from what failed to what is known; from the bottom again, for longer, where they meet.
    guess = failed + (packing.height - failed) / 2;
    steps = std::max(budget.left() / 8, kShortest);
    if (guess <= failed) guess = impossible + 1;
  }
  return packing.height <= impossible + 1;
}

}  // namespace fxopt::arena
