#include "core/min_cut.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <random>

#include "tests/catch.h"

namespace fxopt {
namespace {

constexpr int64_t kNoLimit = Arc::kNoLimit;

// An independent algorithm: shortest augmenting paths in a matrix (Edmonds and Karp).
struct Matrix {
  Matrix(uint32_t n, const std::vector<Arc>& arcs, int64_t no_limit) : size(n), left(size_t{n} * n, 0) {
    for (const Arc& arc : arcs) at(arc.from, arc.to) += arc.capacity == kNoLimit ? no_limit : arc.capacity;
  }
  int64_t& at(uint32_t from, uint32_t to) { return left[size_t{from} * size + to]; }

  std::vector<uint32_t> path(uint32_t from, uint32_t to) {
    std::vector<uint32_t> before(size, size);
    std::queue<uint32_t> pending({from});
    before[from] = from;
    for (; !pending.empty(); pending.pop()) {
      for (uint32_t next = 0; next < size; ++next) {
        if (before[next] != size || at(pending.front(), next) <= 0) continue;
        before[next] = pending.front();
        pending.push(next);
      }
    }
    if (before[to] == size) return {};
    std::vector<uint32_t> found = {to};
    while (found.back() != from) found.push_back(before[found.back()]);
    return {found.rbegin(), found.rend()};
  }

  int64_t flow(uint32_t source, uint32_t sink) {
    int64_t sum = 0;
    for (std::vector<uint32_t> way = path(source, sink); !way.empty(); way = path(source, sink)) {
      int64_t least = kNoLimit;
      for (size_t i = 0; i + 1 < way.size(); ++i) least = std::min(least, at(way[i], way[i + 1]));
      for (size_t i = 0; i + 1 < way.size(); ++i) {
        at(way[i], way[i + 1]) -= least;
        at(way[i + 1], way[i]) += least;
      }
      sum += least;
    }
    return sum;
  }

  uint32_t size;
  std::vector<int64_t> left;
};

MinCut cut_of(uint32_t num_vertices, const std::vector<Arc>& arcs, uint32_t source, uint32_t sink) {
  return min_cut(num_vertices, arcs, source, sink).value();
}

}  // namespace

TEST_CASE("a minimal cut: of equal ones the one nearest to the sink") {
  const MinCut cut = cut_of(6, {{0, 1, kNoLimit}, {1, 2, 5}, {2, 3, kNoLimit}, {3, 4, 5}, {4, 5, kNoLimit}}, 0, 5);
  CHECK(cut.value == 5);
  CHECK(cut.is_sink_side == std::vector<bool>{false, false, false, false, true, true});
}

TEST_CASE("a minimal cut: a path without limits is told") {
  const MinCut cut = cut_of(5, {{0, 1, kNoLimit}, {1, 2, 3}, {1, 3, kNoLimit}, {3, 4, kNoLimit}, {2, 4, 1}}, 0, 4);
  CHECK_FALSE(cut.value.has_value());
  CHECK(cut.unlimited_path == std::vector<uint32_t>{0, 1, 3, 4});
}

TEST_CASE("a minimal cut: capacities that cannot be added up are an error") {
  const std::vector<Arc> just_inside = {{0, 1, (int64_t{1} << 61) - 1}};
  CHECK(cut_of(2, just_inside, 0, 1).value == (int64_t{1} << 61) - 1);
  const std::vector<Arc> just_outside = {{0, 1, (int64_t{1} << 61) - 1}, {0, 1, 1}};
  CHECK(min_cut(2, just_outside, 0, 1).error().code == ErrorCode::kLimit);
}

TEST_CASE("a minimal cut: a second algorithm finds the same on 1,000 random networks") {
  std::mt19937 dice(20261125);
  const auto roll = [&dice](uint32_t below) { return static_cast<uint32_t>(dice() % below); };
  size_t unlimited = 0;
  for (int run = 0; run < 1000; ++run) {
    const uint32_t n = 4 + roll(30);
    std::vector<Arc> arcs;
    for (uint32_t i = roll(4 * n); i > 0; --i) {
      arcs.push_back({roll(n), roll(n), roll(6) == 0 ? kNoLimit : static_cast<int64_t>(roll(8))});
    }
    const MinCut cut = cut_of(n, arcs, 0, n - 1);
    const int64_t sum = std::accumulate(arcs.begin(), arcs.end(), int64_t{0}, [](int64_t total, const Arc& arc) {
      return total + (arc.capacity == kNoLimit ? 0 : arc.capacity);
    });
    Matrix second(n, arcs, sum + 1);
    const int64_t flow = second.flow(0, n - 1);
    if (flow > sum) {
      ++unlimited;
      CHECK_FALSE(cut.value.has_value());
      continue;
    }
    REQUIRE(cut.value == flow);
    for (uint32_t i = 0; i < n; ++i) CHECK(cut.is_sink_side[i] == !second.path(i, n - 1).empty());
  }
  CHECK(unlimited > 20);
}

}  // namespace fxopt
