#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

enum class Verdict { kFound, kImpossible, kUnknown };

// Weights of the sections, which searches share. Each branch that ends in a section adds to the
// section's weight. Recent ends add more than earlier ends.
class SectionWeights {
 public:
  explicit SectionWeights(int32_t sections) : weights_(static_cast<size_t>(sections), 1.0) {}
  double operator[](size_t section) const { return weights_[section]; }
  void note_end(size_t section);

 private:
  std::vector<double> weights_;
  double step_ = 1.0;
};

// The rule that selects one of the lowest sections as the next section to fill.
enum class SectionRule { kHeaviest, kFewestPerWeight };

// Searches for a packing that is not higher than `capacity`. Blocks that fit at a place are tried
// in the given order. Returns kUnknown if the budget ends before the answer is known. The search is
// exponential in the worst case.
//
// The search fills places from the lowest to the highest. At the lowest section of the skyline, it
// tries each block that fits there. The search then tries to leave the section empty, so that
// higher blocks cover the section. A branch ends in two cases:
//   - Some section does not have enough room for the blocks that must still be placed in it.
//   - A block could be lowered later. Another branch covers that packing.
// If no unplaced block joins two parts of the problem, the search handles the parts one by one.
//
// The canonical solutions and most of the reasons to end a branch come from Moffitt 2023
// (MiniMalloc, ASPLOS, doi 10.1145/3623278.3624752). That paper branches on all blocks, but this
// search branches on one place. The weights come from Boussemart et al. 2004, who use them for
// constraint problems.
Verdict search_packing(const Problem& problem, const Order& order, SectionRule rule, int64_t capacity,
                       SectionWeights& weights, Budget& budget, std::vector<int64_t>& offsets);

// Looks for low packings with searches of growing length. The searches use several orders, which
// are perturbed more and more. Some orders lead to a solution much faster than others. Therefore
// many short searches are better than one long search.
class HeightSearch {
 public:
  // The search does not look for packings below `target`.
  HeightSearch(const Problem& problem, int64_t target);

  // Continues until the budget ends. Replaces `packing` by the lowest packing found. The first
  // search is for the target height. Later searches are for heights between the target and the best
  // known height. Returns true if the result meets the target, or if no lower packing exists.
  bool run(Budget& budget, Packing& packing);

 private:
  Verdict search(int64_t capacity, Budget& budget, std::vector<int64_t>& offsets);
  Order next_order();

  const Problem& problem_;
  std::vector<Order> orders_;
  SectionWeights weights_;
  std::mt19937_64 random_{1};
  int64_t searches_ = 0;
  int64_t impossible_;  // packings of this height do not exist or are not needed
  int64_t failed_;      // height of the last failed search; at least impossible_
  bool first_ = true;
};

}  // namespace fxopt::arena
