// Implements sweep_best_fit().
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/arena/heuristics.h"

namespace fxopt::arena {
namespace {

// Free gaps of a growing arena, by offset and by size.
class Gaps {
 public:
  // Takes `size` from the smallest sufficient gap. If no gap is large enough, grows the arena at
  // its end. Returns the offset.
  int64_t take(int64_t size) {
    const auto best = by_size_.lower_bound({size, 0});
    if (best != by_size_.end()) {
      const auto [length, offset] = *best;
      remove(offset, length);
      if (length > size) add(offset + size, length - size);
      return offset;
    }
    int64_t offset = top_;
    if (!by_offset_.empty()) {
      const auto [last, length] = *by_offset_.rbegin();
      if (last + length == top_) {
        offset = last;
        remove(last, length);
      }
    }
    top_ = offset + size;
    return offset;
  }

  void release(int64_t offset, int64_t size) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + size) {
      const int64_t length = next->second;
      remove(offset + size, length);
      size += length;
    }
    auto before = by_offset_.lower_bound(offset);
    if (before != by_offset_.begin()) {
      --before;
      const auto [start, length] = *before;
      if (start + length == offset) {
        remove(start, length);
        offset = start;
        size += length;
      }
    }
    add(offset, size);
  }

 private:
  void add(int64_t offset, int64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(int64_t offset, int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  int64_t top_ = 0;
  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
};

}  // namespace

Packing sweep_best_fit(const Problem& problem, const Order& order, bool backward) {
  Packing packing;
  packing.offsets.assign(order.size(), 0);
  std::vector<std::vector<uint32_t>> starting(static_cast<size_t>(problem.sections));
  std::vector<std::vector<uint32_t>> ending(static_cast<size_t>(problem.sections) + 1);
  for (const uint32_t i : order) {
    const Block& block = problem.blocks[i];
    starting[static_cast<size_t>(backward ? problem.sections - block.end : block.begin)].push_back(i);
    ending[static_cast<size_t>(backward ? problem.sections - block.begin : block.end)].push_back(i);
  }
  Gaps gaps;
  for (size_t s = 0; s < starting.size(); ++s) {
    for (const uint32_t i : ending[s]) gaps.release(packing.offsets[i], problem.blocks[i].size);
    for (const uint32_t i : starting[s]) packing.offsets[i] = gaps.take(problem.blocks[i].size);
  }
  packing.height = height_of(problem, packing.offsets);
  return packing;
}

}  // namespace fxopt::arena
