#include "core/arena/search.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fxopt::arena {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class Search {
 public:
  Search(const Problem& problem, const Order& order, SectionRule rule, int64_t capacity, SectionWeights& weights,
         Budget& budget);

  Verdict run(std::vector<int64_t>& offsets);

 private:
  struct Change {
    int64_t* where;
    int64_t old;
  };
  struct Range {
    int32_t begin;
    int32_t end;
  };

  void set(int64_t& where, int64_t value) {
    trail_.push_back({&where, where});
    where = value;
  }
  void undo(size_t mark) {
    for (; trail_.size() > mark; trail_.pop_back()) *trail_.back().where = trail_.back().old;
  }
  bool placed(uint32_t i) const { return offset_[i] >= 0; }
  bool solve(Range range);
  bool solve_parts(Range range);
  int32_t choose_section(Range range, int64_t level);
  bool branch(Range range, int32_t section, int64_t level);
  bool place(uint32_t i, int64_t level);
  bool waste(int32_t section, int64_t level);
  bool propagate();
  bool raise_section(size_t s);
  bool update_floor(uint32_t i);
  bool supported(uint32_t i, int64_t level) const;
  void touch_block(uint32_t i);
  void touch_section(int32_t s);

  const std::vector<Block> blocks_;  // in the order in which the search tries the blocks
  const Order& order_;
  const SectionRule rule_;
  const int64_t capacity_;
  SectionWeights& weights_;
  Budget& budget_;
  bool exhausted_ = false;
  std::vector<std::vector<uint32_t>> in_section_;
  std::vector<std::vector<uint32_t>> neighbours_;
  std::vector<int64_t> twin_;      // per block: an earlier block with the same span and size, or -1
  std::vector<int64_t> offset_;    // per block: -1 if the block is not placed
  std::vector<int64_t> floor_;     // per block: lower bound of its offset
  std::vector<int64_t> height_;    // per section: lower bound of the offsets of unplaced blocks
  std::vector<int64_t> top_;       // per section: top of the highest placed block
  std::vector<int64_t> upmost_;    // per section: the highest placed block, or -1
  std::vector<int64_t> rest_;      // per section: sum of the sizes of unplaced blocks
  std::vector<int64_t> crossing_;  // per section: unplaced blocks also live in the next section
  std::vector<Change> trail_;
  std::vector<uint32_t> block_queue_;
  std::vector<char> block_queued_;
  std::vector<int32_t> section_queue_;
  std::vector<char> section_queued_;
};

std::vector<Block> ordered(const Problem& problem, const Order& order) {
  std::vector<Block> blocks;
  for (const uint32_t i : order) blocks.push_back(problem.blocks[i]);
  return blocks;
}

Search::Search(const Problem& problem, const Order& order, SectionRule rule, int64_t capacity, SectionWeights& weights,
               Budget& budget)
    : blocks_(ordered(problem, order)),
      order_(order),
      rule_(rule),
      capacity_(capacity),
      weights_(weights),
      budget_(budget) {
  const size_t n = blocks_.size();
  const auto sections = static_cast<size_t>(problem.sections);
  in_section_.resize(sections);
  neighbours_.resize(n);
  twin_.assign(n, -1);
  offset_.assign(n, -1);
  floor_.assign(n, 0);
  height_.assign(sections, 0);
  top_.assign(sections, 0);
  upmost_.assign(sections, -1);
  rest_.assign(sections, 0);
  crossing_.assign(sections, 0);
  block_queued_.assign(n, 0);
  section_queued_.assign(sections, 0);
  for (uint32_t i = 0; i < n; ++i) {
    for (auto s = static_cast<size_t>(blocks_[i].begin); s < static_cast<size_t>(blocks_[i].end); ++s) {
      in_section_[s].push_back(i);
      rest_[s] += blocks_[i].size;
      if (s + 1 < static_cast<size_t>(blocks_[i].end)) ++crossing_[s];
    }
    for (uint32_t j = 0; j < i; ++j) {
      if (blocks_[i].begin >= blocks_[j].end || blocks_[j].begin >= blocks_[i].end) continue;
      neighbours_[i].push_back(j);
      neighbours_[j].push_back(i);
      if (blocks_[i].begin == blocks_[j].begin && blocks_[i].end == blocks_[j].end &&
          blocks_[i].size == blocks_[j].size) {
        twin_[i] = j;
      }
    }
  }
}

Verdict Search::run(std::vector<int64_t>& offsets) {
  for (size_t s = 0; s < rest_.size(); ++s) {
    if (rest_[s] > capacity_) return Verdict::kImpossible;
  }
  if (!solve_parts({0, static_cast<int32_t>(height_.size())})) {
    return exhausted_ ? Verdict::kUnknown : Verdict::kImpossible;
  }
  offsets.assign(blocks_.size(), 0);
  for (size_t i = 0; i < blocks_.size(); ++i) offsets[order_[i]] = offset_[i];
  return Verdict::kFound;
}

void Search::touch_block(uint32_t i) {
  if (block_queued_[i] != 0 || placed(i)) return;
  block_queued_[i] = 1;
  block_queue_.push_back(i);
}

void Search::touch_section(int32_t s) {
  if (section_queued_[static_cast<size_t>(s)] != 0) return;
  section_queued_[static_cast<size_t>(s)] = 1;
  section_queue_.push_back(s);
}

bool Search::update_floor(uint32_t i) {
  int64_t floor = 0;
  int64_t lowest = kNever;
  int64_t real = 0;
  for (auto s = static_cast<size_t>(blocks_[i].begin); s < static_cast<size_t>(blocks_[i].end); ++s) {
    floor = std::max(floor, height_[s]);
    lowest = std::min(lowest, height_[s]);
    real = std::max(real, top_[s]);
  }
  budget_.spend(blocks_[i].end - blocks_[i].begin);
  // The block would fit below all future blocks, so another branch covers this packing.
  if (real + blocks_[i].size <= lowest) return false;
  if (floor <= floor_[i]) return true;
  set(floor_[i], floor);
  for (int32_t s = blocks_[i].begin; s < blocks_[i].end; ++s) touch_section(s);
  return true;
}

bool Search::raise_section(size_t s) {
  int64_t lowest = kNever;
  for (const uint32_t i : in_section_[s]) {
    if (!placed(i)) lowest = std::min(lowest, floor_[i]);
  }
  budget_.spend(static_cast<int64_t>(in_section_[s].size()));
  if (lowest == kNever) return true;
  if (lowest > height_[s]) {
    set(height_[s], lowest);
    for (const uint32_t i : in_section_[s]) touch_block(i);
  }
  if (height_[s] + rest_[s] <= capacity_) return true;
  weights_.note_end(s);
  return false;
}

bool Search::propagate() {
  bool good = true;
  while (good && (!block_queue_.empty() || !section_queue_.empty())) {
    if (!block_queue_.empty()) {
      const uint32_t i = block_queue_.back();
      block_queue_.pop_back();
      block_queued_[i] = 0;
      good = update_floor(i);
    } else {
      const int32_t s = section_queue_.back();
      section_queue_.pop_back();
      section_queued_[static_cast<size_t>(s)] = 0;
      good = raise_section(static_cast<size_t>(s));
    }
  }
  for (const uint32_t i : block_queue_) block_queued_[i] = 0;
  for (const int32_t s : section_queue_) section_queued_[static_cast<size_t>(s)] = 0;
  block_queue_.clear();
  section_queue_.clear();
  return good;
}

bool Search::place(uint32_t i, int64_t level) {
  const Block& block = blocks_[i];
  set(offset_[i], level);
  for (auto s = static_cast<size_t>(block.begin); s < static_cast<size_t>(block.end); ++s) {
    set(height_[s], level + block.size);
    set(top_[s], level + block.size);
    set(upmost_[s], i);
    set(rest_[s], rest_[s] - block.size);
    if (s + 1 < static_cast<size_t>(block.end)) set(crossing_[s], crossing_[s] - 1);
    touch_section(static_cast<int32_t>(s));
  }
  for (const uint32_t j : neighbours_[i]) touch_block(j);
  budget_.spend(static_cast<int64_t>(neighbours_[i].size()) + 5 * (block.end - block.begin));
  return propagate();
}

// Leaves the space at `level` in the section empty. Each unplaced block of the section must then
// rest on a block that is not placed yet, so the floor of each unplaced block rises.
bool Search::waste(int32_t section, int64_t level) {
  for (const uint32_t i : in_section_[static_cast<size_t>(section)]) {
    if (placed(i) || floor_[i] > level) continue;
    int64_t support = kNever;
    for (const uint32_t j : neighbours_[i]) {
      if (placed(j) || (blocks_[j].begin <= section && section < blocks_[j].end)) continue;
      support = std::min(support, floor_[j] + blocks_[j].size);
    }
    budget_.spend(static_cast<int64_t>(neighbours_[i].size()));
    if (support == kNever) return false;
    set(floor_[i], support);
    for (int32_t s = blocks_[i].begin; s < blocks_[i].end; ++s) touch_section(s);
  }
  return propagate();
}

// Returns true if a block at this level rests on a placed block or has offset 0. Returns false if
// the block would break the fixed order of blocks with the same span. The fixed order avoids
// equivalent packings.
bool Search::supported(uint32_t i, int64_t level) const {
  if (twin_[i] >= 0 && !placed(static_cast<uint32_t>(twin_[i]))) return false;
  if (level == 0) return true;
  int64_t real = 0;
  for (auto s = static_cast<size_t>(blocks_[i].begin); s < static_cast<size_t>(blocks_[i].end); ++s) {
    real = std::max(real, top_[s]);
  }
  if (real < level) return false;
  const int64_t below = upmost_[static_cast<size_t>(blocks_[i].begin)];
  if (below < 0) return true;
  const Block& under = blocks_[static_cast<size_t>(below)];
  const bool same_span = under.begin == blocks_[i].begin && under.end == blocks_[i].end;
  return !same_span || offset_[static_cast<size_t>(below)] + under.size < level || below < i;
}

// Splits a range wherever no unplaced block crosses, and searches the parts. The part with the
// least free space comes first.
bool Search::solve_parts(Range range) {
  std::vector<std::pair<int64_t, Range>> parts;
  for (int32_t s = range.begin; s < range.end;) {
    Range part{s, s};
    int64_t slack = kNever;
    bool more = true;
    for (; more; ++s) {
      const auto at = static_cast<size_t>(s);
      if (rest_[at] > 0) slack = std::min(slack, capacity_ - height_[at] - rest_[at]);
      more = crossing_[at] > 0;
    }
    part.end = s;
    if (slack != kNever) parts.emplace_back(slack, part);
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [slack, part] : parts) {
    if (!solve(part)) return false;
  }
  return true;
}

bool Search::solve(Range range) {
  if (!budget_.spend(range.end - range.begin)) {
    exhausted_ = true;
    return false;
  }
  int64_t level = kNever;
  for (auto s = static_cast<size_t>(range.begin); s < static_cast<size_t>(range.end); ++s) {
    if (rest_[s] > 0) level = std::min(level, height_[s]);
  }
  return branch(range, choose_section(range, level), level);
}

int32_t Search::choose_section(Range range, int64_t level) {
  int32_t chosen = -1;
  std::pair<double, double> best{std::numeric_limits<double>::infinity(), 0};
  for (int32_t s = range.begin; s < range.end; ++s) {
    const auto at = static_cast<size_t>(s);
    if (rest_[at] == 0 || height_[at] != level) continue;
    double fitting = 0;
    for (const uint32_t i : in_section_[at]) fitting += !placed(i) && floor_[i] == level ? 1 : 0;
    budget_.spend(static_cast<int64_t>(in_section_[at].size()));
    const std::pair<double, double> key = rule_ == SectionRule::kHeaviest
                                              ? std::pair(-weights_[at], fitting)
                                              : std::pair(fitting / weights_[at], static_cast<double>(rest_[at]));
    if (key >= best) continue;
    best = key;
    chosen = s;
  }
  return chosen;
}

bool Search::branch(Range range, int32_t section, int64_t level) {
  const size_t mark = trail_.size();
  for (const uint32_t i : in_section_[static_cast<size_t>(section)]) {
    if (placed(i) || floor_[i] != level || !supported(i, level)) continue;
    if (place(i, level) && solve_parts(range)) return true;
    undo(mark);
    if (exhausted_) return false;
  }
  if (waste(section, level) && solve_parts(range)) return true;
  undo(mark);
  return false;
}

}  // namespace

void SectionWeights::note_end(size_t section) {
  constexpr double kGrowth = 1.00005;  // after 14,000 failures, a failure weighs twice as much
  constexpr double kLargest = 1e100;
  weights_[section] += step_;
  step_ *= kGrowth;
  if (step_ < kLargest) return;
  for (double& weight : weights_) weight /= kLargest;
  step_ /= kLargest;
}

Verdict search_packing(const Problem& problem, const Order& order, SectionRule rule, int64_t capacity,
                       SectionWeights& weights, Budget& budget, std::vector<int64_t>& offsets) {
  return Search(problem, order, rule, capacity, weights, budget).run(offsets);
}

}  // namespace fxopt::arena
