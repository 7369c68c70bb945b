#include "core/arena/orders.h"

#include <algorithm>
#include <array>
#include <bit>

namespace fxopt::arena {
namespace {

// Returns the largest load in a range of sections. Table k contains the maximum of each 2^k
// consecutive loads.
class RangeMax {
 public:
  explicit RangeMax(std::vector<int64_t> values) {
    tables_.push_back(std::move(values));
    for (size_t width = 1; 2 * width <= tables_[0].size(); width *= 2) {
      const std::vector<int64_t>& half = tables_.back();
      std::vector<int64_t> table(half.size() - width);
      for (size_t i = 0; i < table.size(); ++i) table[i] = std::max(half[i], half[i + width]);
      tables_.push_back(std::move(table));
    }
  }

  int64_t operator()(size_t begin, size_t end) const {
    const auto k = static_cast<size_t>(std::bit_width(end - begin) - 1);
    return std::max(tables_[k][begin], tables_[k][end - (size_t{1} << k)]);
  }

 private:
  std::vector<std::vector<int64_t>> tables_;
};

using Key = std::array<double, 3>;

Key make_key(OrderKind kind, double lifetime, double size, double load) {
  const double area = lifetime * size;
  switch (kind) {
    case OrderKind::kLifetime:
      return {lifetime, size, load};
    case OrderKind::kSize:
      return {size, lifetime, load};
    case OrderKind::kArea:
      return {area, lifetime, load};
    case OrderKind::kLoad:
      return {load, area, lifetime};
    case OrderKind::kLoadLifetime:
      return {load, lifetime, size};
  }
  return {};
}

}  // namespace

Order make_order(const Problem& problem, OrderKind kind) {
  const RangeMax load(section_loads(problem));
  std::vector<Key> keys;
  for (const Block& block : problem.blocks) {
    const int64_t most = load(static_cast<size_t>(block.begin), static_cast<size_t>(block.end));
    keys.push_back(make_key(kind, block.end - block.begin, static_cast<double>(block.size), static_cast<double>(most)));
  }
  Order order(problem.blocks.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] > keys[b]; });
  return order;
}

}  // namespace fxopt::arena
