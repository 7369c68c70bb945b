#include "core/delta_debug.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tests/catch.h"

namespace fxopt {
namespace {

// A list in which some items must stay.
class List {
 public:
  List(size_t count, std::set<size_t> needed) : count_(count), needed_(std::move(needed)) {
    for (size_t i = 0; i < count; ++i) left_.insert(i);
  }

  std::vector<size_t> run() {
    return delta_debug(
        count_, [this](const std::vector<size_t>& items) { return remove(items); },
        [this](size_t item) { return left_.contains(item); });
  }

  // Ties `other` to `item`: removing `item` removes both.
  void tie(size_t item, size_t other) { ties_.insert({item, other}); }
  size_t calls() const { return calls_; }
  const std::set<size_t>& left() const { return left_; }

 private:
  bool remove(const std::vector<size_t>& items) {
    ++calls_;
    CHECK_FALSE(items.empty());
    CHECK(std::is_sorted(items.begin(), items.end()));
    for (const size_t item : items) CHECK(left_.contains(item));
    if (std::any_of(items.begin(), items.end(), [this](size_t item) { return needed_.contains(item); })) return false;
    for (const size_t item : items) {
      left_.erase(item);
      for (const auto& [from, to] : ties_) {
        if (from == item) left_.erase(to);
      }
    }
    return true;
  }

  size_t count_;
  std::set<size_t> needed_;
  std::set<size_t> left_;
  std::set<std::pair<size_t, size_t>> ties_;
  size_t calls_ = 0;
};

TEST_CASE("delta debugging removes everything at once when it may") {
  List list(1000, {});
  CHECK(list.run().empty());
  CHECK(list.calls() == 1);
}

TEST_CASE("delta debugging of an empty list asks nothing") {
  List list(0, {});
  CHECK(list.run().empty());
  CHECK(list.calls() == 0);
}

TEST_CASE("delta debugging finds the items that must stay, wherever they are") {
  for (const std::set<size_t>& needed :
       std::vector<std::set<size_t>>{{0}, {999}, {500}, {0, 999}, {3, 4, 5}, {1, 200, 400, 600, 800}}) {
    List list(1000, needed);
    const std::vector<size_t> left = list.run();
    CHECK(std::set<size_t>(left.begin(), left.end()) == needed);
    CHECK(list.calls() <= needed.size() * 22 + 2);
  }
}

TEST_CASE("delta debugging where nothing can go calls at most about twice for each item") {
  std::set<size_t> all;
  for (size_t i = 0; i < 100; ++i) all.insert(i);
  List list(100, all);
  CHECK(list.run().size() == 100);
  CHECK(list.calls() <= 2 * 100 + 8);
}

TEST_CASE("delta debugging never asks for what went along with something else") {
  List list(64, {5, 40});
  for (size_t i = 0; i < 64; ++i) {
    if (i % 3 == 0 && i != 5 && i != 40 && i > 2 && i - 2 != 5 && i - 2 != 40) list.tie(i, i - 2);
  }
  CHECK(list.run() == std::vector<size_t>{5, 40});  // remove() checks that each item is there
}

// The first half can be removed only after the second.
TEST_CASE("delta debugging tries single items again after others went") {
  std::set<size_t> left{0, 1, 2, 3};
  const std::vector<size_t> kept = delta_debug(
      4,
      [&](const std::vector<size_t>& items) {
        if (items.size() > 1) return false;
        const size_t item = items.front();
        if (item == 3 && left.contains(0)) return false;
        left.erase(item);
        return true;
      },
      [&](size_t item) { return left.contains(item); });
  CHECK(kept.empty());
}

}  // namespace
}  // namespace fxopt
