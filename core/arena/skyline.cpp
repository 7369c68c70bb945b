// The lowest place first.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/arena/heuristics.h"

namespace fxopt::arena {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Blocks as points (begin, end) in a k-d tree that finds the one of lowest rank inside a range of sections.
class BlockTree {
 public:
  BlockTree(const Problem& problem, const Order& order)
      : blocks_(problem.blocks), points_(order), rank_(order.size()), leaf_of_(order.size()) {
    for (uint32_t i = 0; i < order.size(); ++i) rank_[order[i]] = i;
    if (!points_.empty()) build(0, static_cast<uint32_t>(points_.size()), kNone, true);
  }

  // The block of lowest rank that begins at `begin` or later and ends at `end` or before, or kNone.
  uint32_t find(int32_t begin, int32_t end) const {
    Found found;
    if (!nodes_.empty()) find(0, begin, end, found);
    return found.block;
  }

  void erase(uint32_t block) {
    rank_[block] = kNone;
    uint32_t at = leaf_of_[block];
    nodes_[at].best = kNone;
    for (uint32_t i = nodes_[at].first; i < nodes_[at].stop; ++i) {
      nodes_[at].best = std::min(nodes_[at].best, rank_[points_[i]]);
    }
    for (at = nodes_[at].parent; at != kNone; at = nodes_[at].parent) {
      nodes_[at].best = std::min(nodes_[at + 1].best, nodes_[nodes_[at].right].best);
    }
  }

 private:
  static constexpr uint32_t kLeaf = 8;

  struct Node {
    int32_t max_begin = 0;
    int32_t min_end = 0;
    uint32_t best = kNone;  // lowest rank of what is left below
    uint32_t parent = kNone;
    uint32_t right = 0;  // the left child is the next node; 0: a leaf
    uint32_t first = 0;  // points [first, stop)
    uint32_t stop = 0;
  };
  struct Found {
    uint32_t rank = kNone;
    uint32_t block = kNone;
  };

  uint32_t build(uint32_t first, uint32_t stop, uint32_t parent, bool by_begin) {
    const auto at = static_cast<uint32_t>(nodes_.size());
    Node node{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(), kNone, parent, 0, first, stop};
    for (uint32_t i = first; i < stop; ++i) {
      node.max_begin = std::max(node.max_begin, blocks_[points_[i]].begin);
      node.min_end = std::min(node.min_end, blocks_[points_[i]].end);
      node.best = std::min(node.best, rank_[points_[i]]);
      leaf_of_[points_[i]] = at;
    }
    nodes_.push_back(node);
    if (stop - first <= kLeaf) return at;
    const uint32_t middle = first + (stop - first) / 2;
    std::nth_element(points_.begin() + first, points_.begin() + middle, points_.begin() + stop,
                     [&](uint32_t a, uint32_t b) {
                       const int32_t x = by_begin ? blocks_[a].begin : blocks_[a].end;
                       const int32_t y = by_begin ? blocks_[b].begin : blocks_[b].end;
                       return x != y ? x < y : a < b;
                     });
    build(first, middle, at, !by_begin);
    nodes_[at].right = build(middle, stop, at, !by_begin);
    return at;
  }

  void find(uint32_t at, int32_t begin, int32_t end, Found& found) const {
    const Node& node = nodes_[at];
    if (node.best >= found.rank || node.max_begin < begin || node.min_end > end) return;
    if (node.right != 0) {
      const bool left_first = nodes_[at + 1].best < nodes_[node.right].best;
      find(left_first ? at + 1 : node.right, begin, end, found);
      find(left_first ? node.right : at + 1, begin, end, found);
      return;
    }
    for (uint32_t i = node.first; i < node.stop; ++i) {
      const uint32_t block = points_[i];
      if (rank_[block] >= found.rank || blocks_[block].begin < begin || blocks_[block].end > end) continue;
      found = {rank_[block], block};
    }
  }

  const std::vector<Block>& blocks_;
  std::vector<uint32_t> points_;
  std::vector<uint32_t> rank_;     // kNone: taken out
  std::vector<uint32_t> leaf_of_;  // of a block
  std::vector<Node> nodes_;
};

// The places of the skyline from left to right, and by height.
class Skyline {
 public:
  struct Place {
    int32_t begin = 0;
    int32_t end = 0;
    int64_t height = 0;
  };

  explicit Skyline(int32_t sections) : places_(static_cast<size_t>(sections)) { insert({0, sections, 0}); }

  bool empty() const { return by_height_.empty(); }
  Place lowest() const { return place(by_height_.begin()->second); }

  // Lets [begin, end) of `place` end at `height`.
  void cover(const Place& place, int32_t begin, int32_t end, int64_t height) {
    remove(place);
    if (place.begin < begin) insert({place.begin, begin, place.height});
    if (end < place.end) insert({end, place.end, place.height});
    merge({begin, end, height});
  }

  // Lifts a place to its lower neighbour; takes it away when there is none.
  void raise(const Place& place) {
    remove(place);
    const bool has_left = place.begin > 0 && stop_of(place.begin) != 0;
    const bool has_right = static_cast<size_t>(place.end) < places_.size() && at(place.end).end != 0;
    if (!has_left && !has_right) return;
    int64_t height = std::numeric_limits<int64_t>::max();
    if (has_left) height = at(stop_of(place.begin) - 1).height;
    if (has_right) height = std::min(height, at(place.end).height);
    merge({place.begin, place.end, height});
  }

 private:
  // A place is kept at its first section; its last section knows where it begins (plus 1).
  struct Slot {
    int32_t end = 0;
    int32_t begin_of_last = 0;
    int64_t height = 0;
  };

  Slot& at(int32_t section) { return places_[static_cast<size_t>(section)]; }
  const Slot& at(int32_t section) const { return places_[static_cast<size_t>(section)]; }
  int32_t stop_of(int32_t section) const { return at(section - 1).begin_of_last; }
  Place place(int32_t begin) const { return {begin, at(begin).end, at(begin).height}; }

  void insert(const Place& place) {
    at(place.begin).end = place.end;
    at(place.begin).height = place.height;
    at(place.end - 1).begin_of_last = place.begin + 1;
    by_height_.emplace(place.height, place.begin);
  }
  void remove(const Place& place) {
    by_height_.erase({place.height, place.begin});
    at(place.begin).end = 0;
    at(place.end - 1).begin_of_last = 0;
  }
  void merge(Place joined) {
    if (joined.begin > 0 && stop_of(joined.begin) != 0) {
      const Place left = place(stop_of(joined.begin) - 1);
      if (left.height == joined.height) {
        remove(left);
        joined.begin = left.begin;
      }
    }
    if (static_cast<size_t>(joined.end) < places_.size() && at(joined.end).end != 0) {
      const Place right = place(joined.end);
      if (right.height == joined.height) {
        remove(right);
        joined.end = right.end;
      }
    }
    insert(joined);
  }

  std::vector<Slot> places_;
  std::set<std::pair<int64_t, int32_t>> by_height_;
};

}  // namespace

Packing fill_skyline(const Problem& problem, const Order& order) {
  Packing packing;
  packing.offsets.assign(order.size(), 0);
  BlockTree left(problem, order);
  Skyline skyline(problem.sections);
  for (size_t placed = 0; placed < order.size();) {
    const Skyline::Place place = skyline.lowest();
    const uint32_t block = left.find(place.begin, place.end);
    if (block == kNone) {
      skyline.raise(place);
      continue;
    }
    left.erase(block);
    ++placed;
    const Block& taken = problem.blocks[block];
    packing.offsets[block] = place.height;
    packing.height = std::max(packing.height, place.height + taken.size);
    skyline.cover(place, taken.begin, taken.end, place.height + taken.size);
  }
  return packing;
}

}  // namespace fxopt::arena
