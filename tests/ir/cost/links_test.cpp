// The duration of collectives: by a device's formulas, and scaled to measurements.
#include "ir/cost/links.h"

#include <numeric>

#include "cli/device.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllReduce, CollectiveKind::kAllToAll, CollectiveKind::kBroadcast};

std::unique_ptr<DeviceProfile> device(const std::string& name) { return must(load_device_profile(name)); }

TEST_CASE("links: the shape of a group follows from its ranks") {
  CHECK(group_shape({0, 1, 2, 3, 4, 5, 6, 7}, 8) == GroupShape{8, 1, 8});
  CHECK(group_shape({7, 8}, 8) == GroupShape{2, 2, 1});  // neighbours on two nodes
  CHECK(group_shape({0, 8, 16, 24}, 8) == GroupShape{4, 4, 1});
  CHECK(group_shape({0, 1, 8}, 8) == GroupShape{3, 2, 2});
  CHECK(group_shape({5}, 8) == GroupShape{1, 1, 1});
}

// The latencies of a ring of 16 ranks on two nodes are NCCL's: base, hops inside a node, hops
// between nodes.
TEST_CASE("links: latencies are those of NCCL's tuning table") {
  const std::unique_ptr<DeviceProfile> h100 = device("h100");
  const LinkModel links(*h100);
  const GroupShape two{16, 2, 8};
  const auto microseconds = [&](CollectiveKind kind, int64_t bytes) {
    return links.seconds(kind, two, bytes)->seconds * 1e6;
  };
  CHECK(microseconds(CollectiveKind::kAllGather, 16) == Approx(23.3).epsilon(0.01));  // LL: 6.6 + 14 * 1 + 2.7
  CHECK(microseconds(CollectiveKind::kAllReduce, 16) ==
        Approx(25.2).epsilon(0.01));  // the tree: 6.8 + 2 * (7 * 0.6 + 5)
  // Bandwidth dominates large ones: 15 chunks of 64 MiB at 345 GB/s, 70 us of Simple.
  CHECK(microseconds(CollectiveKind::kAllGather, 64 << 20) == Approx(15.0 * (64 << 20) / 345e3 + 70).epsilon(0.001));
  // With one rank per node there is one adapter.
  CHECK(links.seconds(CollectiveKind::kAllGather, {2, 2, 1}, 1 << 30)->seconds ==
        Approx((1 << 30) / 50e9).epsilon(0.01));
}

TEST_CASE("links: on every device more bytes never take less time, and a group of one none") {
  for (const char* name : {"a100", "h100", "h200", "b200"}) {
    const std::unique_ptr<DeviceProfile> profile = device(name);
    const LinkModel links(*profile);
    for (const CollectiveKind kind : kKinds) {
      CHECK(links.seconds(kind, {1, 1, 1}, 1 << 20)->seconds == 0);
      for (const int64_t nodes : {1, 2, 3, 4, 16, 128}) {
        for (const int64_t per_node : {1, 2, 8}) {
          if (nodes * per_node == 1) continue;
          double least = 0;
          for (int64_t bytes = 16; bytes <= int64_t{1} << 40; bytes += bytes / 2) {
            const std::optional<LinkModel::Time> time = links.seconds(kind, {nodes * per_node, nodes, per_node}, bytes);
            REQUIRE(time.has_value());
            REQUIRE(time->seconds >= least);
            REQUIRE(time->seconds > 1e-6);
            least = time->seconds;
          }
        }
      }
    }
  }
}

TEST_CASE("links: measured runs count between their sizes, and scale the formula outside of them") {
  const std::unique_ptr<DeviceProfile> h100 = device("h100");
  const GroupShape one{8, 1, 8};
  const LinkModel told(*h100);
  LinkModel links(*h100);
  const auto seconds = [&](int64_t bytes) { return links.seconds(CollectiveKind::kAllGather, one, bytes)->seconds; };
  links.add_sample(CollectiveKind::kAllGather, one, 1 << 20, 50e-6);
  links.add_sample(CollectiveKind::kAllGather, one, 1 << 24, 800e-6);
  CHECK(seconds(1 << 20) == 50e-6);
  CHECK(seconds(1 << 22) == Approx(200e-6));  // the geometric mean of both
  const double factor = 50e-6 / told.seconds(CollectiveKind::kAllGather, one, 1 << 20)->seconds;
  CHECK(seconds(1 << 10) == Approx(factor * told.seconds(CollectiveKind::kAllGather, one, 1 << 10)->seconds));
  CHECK(seconds(1 << 10) > 5e-6);  // the latency remains
  CHECK(seconds(1 << 26) > 2 * 800e-6);
  CHECK(links.seconds(CollectiveKind::kAllGather, one, 1 << 22)->is_measured);
  CHECK_FALSE(links.seconds(CollectiveKind::kAllGather, {16, 2, 8}, 1 << 22)->is_measured);  // another shape
  CHECK_FALSE(links.seconds(CollectiveKind::kReduceScatter, one, 1 << 22)->is_measured);
  // Among several samples of one size, the median counts. A larger size never takes less time than
  // a smaller one.
  for (const double each : {90e-6, 70e-6, 10e-6}) links.add_sample(CollectiveKind::kAllGather, one, 1 << 18, each);
  CHECK(seconds(1 << 18) == 70e-6);
  CHECK(seconds(1 << 20) == 70e-6);
}

TEST_CASE("links: without a formula, runs tell alone") {
  const DeviceProfile none;
  LinkModel links(none);
  const GroupShape one{4, 1, 4};
  CHECK_FALSE(links.seconds(CollectiveKind::kAllReduce, one, 100).has_value());
  links.add_sample(CollectiveKind::kAllReduce, one, 1000, 2e-6);
  CHECK(links.seconds(CollectiveKind::kAllReduce, one, 10)->seconds == 2e-6);
  CHECK(links.seconds(CollectiveKind::kAllReduce, one, 3000)->seconds == Approx(6e-6));
}

}  // namespace
}  // namespace fxopt
