#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

enum class Verdict { kFound, kImpossible, kUnknown };

// What searches learn of one another: in which sections branches ended, recent ends weighing most.
class SectionWeights {
 public:
  explicit SectionWeights(int32_t sections) : weights_(static_cast<size_t>(sections), 1.0) {}
  double operator[](size_t section) const { return weights_[section]; }
  void note_end(size_t section);

 private:
  std::vector<double> weights_;
  double step_ = 1.0;
};

// Which of the lowest sections is filled next.
enum class SectionRule { kHeaviest, kFewestPerWeight };

// Looks for a packing no higher than `capacity`. Among blocks that fit at a place the first in order is tried first.
// kUnknown when the budget ends before the answer is known. Exponential in the worst case.
//
// Places are filled from the lowest up. At the lowest section of the skyline the choice is between the blocks that fit
// there and leaving it to be covered by what comes higher. A branch ends when some section cannot take what it still
// has to, or when a block could be let down later, which another branch has; parts that nothing joins any more are
// searched one by one. The canonical solutions and most of the reasons to end a branch are those of Moffitt 2023
// (MiniMalloc, ASPLOS, doi 10.1145/3623278.3624752); branching on one place, not on all blocks, is not. The weights are
// those of Boussemart et al. 2004 for constraints.
Verdict search_packing(const Problem& problem, const Order& order, SectionRule rule, int64_t capacity,
                       SectionWeights& weights, Budget& budget, std::vector<int64_t>& offsets);

// Searches for low packings by searches of growing length from several orders that are disturbed more and more: luck
// differs so much between orders that many short searches beat a long one.
class HeightSearch {
 public:
  // Nothing lower than the target is wanted.
  HeightSearch(const Problem& problem, int64_t target);

  // Goes on until the budget ends; `packing` becomes the lowest. The first call searches at the target, later ones
  // between it and what is known. True when nothing lower than the result, or than the target if it is higher, exists.
  bool run(Budget& budget, Packing& packing);

 private:
  Verdict search(int64_t capacity, Budget& budget, std::vector<int64_t>& offsets);
  Order next_order();

  const Problem& problem_;
  std::vector<Order> orders_;
  SectionWeights weights_;
  std::mt19937_64 random_{1};
  int64_t searches_ = 0;
  int64_t impossible_;  // no packing is this low, or none so low is wanted
  int64_t failed_;      // at least as high: where the last search without success looked
  bool first_ = true;
};

}  // namespace fxopt::arena
