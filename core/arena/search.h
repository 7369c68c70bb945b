#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/arena/orders.h"
#include "core/arena/problem.h"

namespace fxopt::arena {

enum class Verdict { kFound, kImpossible, kUnknown };

// A weight for each section of time (see Block). If several sections can be filled next,
// SectionRule prefers sections with a large weight. All searches of one problem share the weights.
// Each branch that fails because a section is too full adds to the weight of this section. A later
// failure adds more than an earlier failure.
class SectionWeights {
 public:
  explicit SectionWeights(int32_t sections) : weights_(static_cast<size_t>(sections), 1.0) {}
  double operator[](size_t section) const { return weights_[section]; }
  void note_end(size_t section);

 private:
  std::vector<double> weights_;
  double step_ = 1.0;
};

// The rule that selects the next section to fill, if several sections have the same smallest
// height.
enum class SectionRule { kHeaviest, kFewestPerWeight };

// Searches for a packing that is not higher than `capacity`. Tries the blocks in the given order.
// Returns kUnknown if the budget ends before the answer is known. The search is exponential in the
// worst case.
//
// The height of a section is the lowest offset that an unplaced block can still have in it. The
// search selects a section with the smallest height. In this section, it tries to place each block
// that fits at this height. In the last branch, the search places no block at this height, so a gap
// remains. A branch fails in two cases:
//   - A section does not have enough room for its unplaced blocks.
//   - An unplaced block fits into a gap. The branch is not needed, because another branch fills the
//     gap with this block.
// If no unplaced block joins two parts of the problem, the search handles the parts one by one.
//
// Most rules that end a branch come from Moffitt 2023 (MiniMalloc, ASPLOS, doi
// 10.1145/3623278.3624752). At each step, the search of that paper tries all blocks, but this
// search tries only the blocks of one section. The weights come from Boussemart et al. 2004, who
// use weights for constraint problems.
Verdict search_packing(const Problem& problem, const Order& order, SectionRule rule, int64_t capacity,
                       SectionWeights& weights, Budget& budget, std::vector<int64_t>& offsets);

// Looks for low packings with searches of growing length. The searches use several orders, which
// are perturbed more and more. Some orders lead to a solution much faster than others. Therefore
// many short searches are better than one long search.
class HeightSearch {
 public:
  // The search does not look for packings below `target`.
  HeightSearch(const Problem& problem, int64_t target);

  // Continues until the budget ends or no lower packing is needed. Replaces `packing` by the lowest
  // packing found. The first search is for the target height. Later searches are for heights
  // between the target and the best known height. Returns true if the height of the result is at
  // most the target, or if no lower packing exists.
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
  int64_t failed_;      // the height for which the last failed search looked; failed_ >= impossible_
  bool first_ = true;
};

}  // namespace fxopt::arena
