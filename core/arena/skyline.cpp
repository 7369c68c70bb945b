// Implements SkylineFiller.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "core/arena/heuristics.h"

namespace fxopt::arena {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kLeaf = 8;           // blocks
constexpr int64_t kStepsPerLevel = 40;  // per level of the k-d tree, for one block

// The places of the skyline, in order of sections and in order of height. A place is a maximal
// range of sections of equal height.
class Skyline {
 public:
  struct Place {
    int32_t begin = 0;
    int32_t end = 0;
    int64_t height = 0;
  };

  explicit Skyline(int32_t sections) : places_(static_cast<size_t>(sections)) { insert({0, sections, 0}); }

  Place lowest() {
    while (!is_place(by_height_.top())) by_height_.pop();
    return place(by_height_.top().second);
  }

  // Raises the sections [begin, end) of `place` to `height`.
  void cover(const Place& place, int32_t begin, int32_t end, int64_t height) {
    remove(place);
    if (place.begin < begin) insert({place.begin, begin, place.height});
    if (end < place.end) insert({end, place.end, place.height});
    merge({begin, end, height});
  }

  // Raises a place to the height of its lower neighbour. Removes a place that has no neighbour.
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
  using Entry = std::pair<int64_t, int32_t>;  // height and begin

  bool is_place(const Entry& entry) const {
    return at(entry.second).end != 0 && at(entry.second).height == entry.first;
  }

  // The slot of a place's first section stores `end` and `height`. The slot of its last section
  // stores the first section plus 1.
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
  // may still contain removed places
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> by_height_;
};

}  // namespace

// A k-d tree that stores each block as the point (begin, end). The tree finds the block of lowest
// rank inside a range of sections.
class SkylineFiller::BlockTree {
 public:
  explicit BlockTree(const std::vector<Block>& blocks) : places_(blocks.size()) {
    for (uint32_t i = 0; i < blocks.size(); ++i) points_.push_back({blocks[i].begin, blocks[i].end, i, kNone});
    if (!points_.empty()) build(0, static_cast<uint32_t>(points_.size()), kNone, true);
    for (uint32_t i = 0; i < points_.size(); ++i) places_[points_[i].block].point = i;
  }

  // Inserts all blocks, ranked by an order.
  void reset(const Order& order) {
    for (uint32_t rank = 0; rank < order.size(); ++rank) points_[places_[order[rank]].point].rank = rank;
    for (auto at = static_cast<uint32_t>(nodes_.size()); at-- > 0;) update(at);
  }

  // Returns the block of lowest rank that begins at or after `begin` and ends at or before `end`,
  // or kNone.
  uint32_t find(int32_t begin, int32_t end) const {
    Point found{0, 0, kNone, kNone};
    if (!nodes_.empty()) find(0, begin, end, found);
    return found.block;
  }

  void erase(uint32_t block) {
    points_[places_[block].point].rank = kNone;
    for (uint32_t at = places_[block].leaf; at != kNone; at = nodes_[at].parent) {
      const uint32_t before = nodes_[at].best;
      update(at);
      if (nodes_[at].best == before) return;
    }
  }

 private:
  struct Point {
    int32_t begin;
    int32_t end;
    uint32_t block;
    uint32_t rank;  // kNone: removed
  };
  struct Place {
    uint32_t point = 0;
    uint32_t leaf = 0;
  };
  struct Node {
    int32_t max_begin = std::numeric_limits<int32_t>::min();
    int32_t min_end = std::numeric_limits<int32_t>::max();
    uint32_t best = kNone;  // lowest rank among the remaining points of the subtree
    uint32_t parent = kNone;
    uint32_t right = 0;  // the left child is the next node; 0: a leaf
    uint32_t first = 0;  // points [first, stop)
    uint32_t stop = 0;
  };

  void update(uint32_t at) {
    Node& node = nodes_[at];
    if (node.right != 0) {
      node.best = std::min(nodes_[at + 1].best, nodes_[node.right].best);
      return;
    }
    node.best = kNone;
    for (uint32_t i = node.first; i < node.stop; ++i) node.best = std::min(node.best, points_[i].rank);
  }

  uint32_t build(uint32_t first, uint32_t stop, uint32_t parent, bool by_begin) {
    const auto at = static_cast<uint32_t>(nodes_.size());
    Node node;
    node.parent = parent;
    node.first = first;
    node.stop = stop;
    for (uint32_t i = first; i < stop; ++i) {
      node.max_begin = std::max(node.max_begin, points_[i].begin);
      node.min_end = std::min(node.min_end, points_[i].end);
    }
    nodes_.push_back(node);
    if (stop - first <= kLeaf) {
      for (uint32_t i = first; i < stop; ++i) places_[points_[i].block].leaf = at;
      return at;
    }
    const uint32_t middle = first + (stop - first) / 2;
    std::nth_element(points_.begin() + first, points_.begin() + middle, points_.begin() + stop,
                     [&](const Point& a, const Point& b) {
                       const int32_t x = by_begin ? a.begin : a.end;
                       const int32_t y = by_begin ? b.begin : b.end;
                       return x != y ? x < y : a.block < b.block;
                     });
    build(first, middle, at, !by_begin);
    const uint32_t right = build(middle, stop, at, !by_begin);
    nodes_[at].right = right;
    return at;
  }

  void find(uint32_t at, int32_t begin, int32_t end, Point& found) const {
    const Node& node = nodes_[at];
    if (node.best >= found.rank || node.max_begin < begin || node.min_end > end) return;
    if (node.right != 0) {
      const bool left_first = nodes_[at + 1].best < nodes_[node.right].best;
      find(left_first ? at + 1 : node.right, begin, end, found);
      find(left_first ? node.right : at + 1, begin, end, found);
      return;
    }
    for (uint32_t i = node.first; i < node.stop; ++i) {
      const Point& point = points_[i];
      if (point.rank < found.rank && point.begin >= begin && point.end <= end) found = point;
    }
  }

  std::vector<Point> points_;
  std::vector<Place> places_;  // by block
  std::vector<Node> nodes_;
};

SkylineFiller::SkylineFiller(const Problem& problem)
    : problem_(problem), tree_(std::make_unique<BlockTree>(problem.blocks)) {}
SkylineFiller::~SkylineFiller() = default;

int64_t SkylineFiller::steps() const {
  const size_t n = problem_.blocks.size();
  return kStepsPerLevel * static_cast<int64_t>(n * std::bit_width(n));
}

Packing SkylineFiller::fill(const Order& order) {
  Packing packing;
  packing.offsets.assign(order.size(), 0);
  tree_->reset(order);
  Skyline skyline(problem_.sections);
  for (size_t placed = 0; placed < order.size();) {
    const Skyline::Place place = skyline.lowest();
    const uint32_t block = tree_->find(place.begin, place.end);
    if (block == kNone) {
      skyline.raise(place);
      continue;
    }
    tree_->erase(block);
    ++placed;
    const Block& taken = problem_.blocks[block];
    packing.offsets[block] = place.height;
    packing.height = std::max(packing.height, place.height + taken.size);
    skyline.cover(place, taken.begin, taken.end, place.height + taken.size);
  }
  return packing;
}

}  // namespace fxopt::arena
