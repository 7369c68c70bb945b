#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

enum class Verdict { kFound, kImpossible, kUnknown };

// Experience shared between searches: the sections in which branches ended, recent ends weighing
// most.
class SectionWeights {
 public:
  explicit SectionWeights(int32_t sections) : weights_(static_cast<size_t>(sections), 1.0) {}
  double operator[](size_t section) const { return weights_[section]; }
  void note_end(size_t section);

 private:
  std::vector<double> weights_;
  double step_ = 1.0;
};

// The rule that selects, among the lowest sections, the next one to fill.
enum class SectionRule { kHeaviest, kFewestPerWeight };

// Searches for a packing no higher than `capacity`. Blocks that fit at a place are tried in order.
// Returns kUnknown if the budget ends before the answer is known. Exponential in the worst case.
//
// Places are filled from the lowest up. At the lowest section of the skyline, the search chooses
// between the blocks that fit there and leaving the section to be covered by higher blocks. A
// branch ends if some section cannot take the blocks it still must hold, or if a block could be
// lowered later, which another branch covers. Parts that no block joins any more are searched one
// by one.
//
// The canonical solutions and most of the reasons to end a branch come from Moffitt 2023
// (MiniMalloc, ASPLOS, doi 10.1145/3623278.3624752). Branching on one place instead of on all
// blocks does not. The weights come from Boussemart et al. 2004, for constraints.
Verdict search_packing(const Problem& problem, const Order& order, SectionRule rule, int64_t capacity,
                       SectionWeights& weights, Budget& budget, std::vector<int64_t>& offsets);

// Looks for low packings with searches of growing length, from several orders that are perturbed
// more and more. Luck differs so much between orders that many short searches beat a long one.
class HeightSearch {
 public:
  // Packings below `target` are not searched for.
  HeightSearch(const Problem& problem, int64_t target);

  // Continues until the budget ends. Replaces `packing` by the lowest found. The first call
  // searches at the target, later ones between the target and the best known height. Returns true
  // if no packing is lower than the result, or than the target if that is higher.
  bool run(Budget& budget, Packing& packing);

 private:
  Verdict search(int64_t capacity, Budget& budget, std::vector<int64_t>& offsets);
  Order next_order();

  const Problem& problem_;
  std::vector<Order> orders_;
  SectionWeights weights_;
  std::mt19937_64 random_{1};
  int64_t searches_ = 0;
  int64_t impossible_;  // no packing is this low, or packings this low are not wanted
  int64_t failed_;      // at least impossible_: the height of the last unsuccessful search
  bool first_ = true;
};

}  // namespace fxopt::arena
