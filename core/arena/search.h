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
// The height of a section is a lower bound of the offsets of the section's unplaced blocks. The
// search selects a section with the smallest height, and tries several branches one after another.
// Each branch except the last places one of the blocks that fit at this height in this section. The
// last branch places no block there, so a gap remains. The search abandons a branch in two cases:
//   - A section does not have enough room for its unplaced blocks.
//   - An unplaced block would fit into a gap that this branch leaves empty. Another branch puts the
//     block into the gap, so the search does not need this branch.
//
// If no unplaced block joins two parts of the problem, the search handles the parts one by one.
//
// Most rules that end a branch come from Moffitt 2023 (MiniMalloc, ASPLOS, doi
// 10.1145/3623278.3624752). At each step, the search of that paper tries all blocks, but this
// search tries only the blocks of one section. The idea of the section weights comes from a paper
// on constraint problems (Boussemart and others 2004).
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
  // Packings up to this height do not exist or are not needed.
  int64_t impossible_;
  // The height limit (`capacity`) of the last search that found no packing. This limit is never
  // smaller than the value of `impossible_`. Before the first search, both members are equal.
  int64_t failed_;
  bool first_ = true;
};

}  // namespace fxopt::arena
