#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/alias/collectives.h"
#include "ir/device/profile.h"

namespace fxopt {

// The distribution of a process group's ranks over nodes (machines). Consecutive ranks share a
// node, and a node has as many ranks as GPUs.
struct GroupShape {
  int64_t ranks = 0;
  int64_t nodes = 0;
  int64_t ranks_per_node = 0;  // the largest number of ranks on one node
  auto operator<=>(const GroupShape&) const = default;
};

// O(ranks log ranks).
GroupShape group_shape(const std::vector<int64_t>& ranks, int64_t gpus_per_node);

// Computes the time of a collective by the `collective` formulas of a device profile. If measured
// runs were added, the times are scaled to the measured times. A formula may use these symbols:
//
//   bytes                  bytes that each rank contributes
//   moved                  bytes that each rank sends around a ring, see ring_bytes()
//   group.ranks            number of ranks of the group
//   group.nodes            number of nodes (machines) with ranks of the group
//   group.ranks_per_node   number of the group's ranks on the node that has the most ranks
//   group.log2_nodes       log2(group.nodes), rounded up: the depth of a tree over these nodes
class LinkModel {
 public:
  // The profile must outlive this object.
  explicit LinkModel(const DeviceProfile& profile);

  // The number of GPUs of a node: the profile's constant `node.gpus`, or 8 without this constant.
  int64_t gpus_per_node() const { return gpus_per_node_; }

  // Records a measured run of a collective. If several runs have the same size, their median is
  // used. A larger size is assumed to take at least as long as each smaller size.
  void add_sample(CollectiveKind kind, const GroupShape& group, int64_t bytes, double seconds);

  struct Time {
    double seconds = 0;
    bool is_measured = false;  // true if the time is scaled from measured runs
  };

  // Returns the time of a collective, or nothing if neither a measured run nor a formula exists.
  // - Between two measured sizes, the time is interpolated on the logarithms of sizes and times.
  // - For other sizes, the profile's formula is multiplied by a factor. The factor is the measured
  //   time of the nearest run, divided by the formula's time for that run.
  // - Without a formula, a size below all measured sizes gets the time of the smallest measured
  //   size. For a size above all measured sizes, the time of the largest is scaled in proportion to
  //   the bytes.
  //
  // If the formula's time never decreases as bytes increase, neither does the returned time.
  //
  // Takes O(size of the formula + log samples) if the samples are sorted. After add_sample() for a
  // kind and a group, the next query for this kind and group sorts their samples. Queries from
  // several threads therefore need a lock.
  std::optional<Time> seconds(CollectiveKind kind, const GroupShape& group, int64_t bytes) const;

 private:
  struct Samples {
    std::vector<std::pair<int64_t, double>> runs;  // bytes and seconds
    bool is_sorted = false;
  };

  std::optional<double> formula(CollectiveKind kind, const GroupShape& group, int64_t bytes) const;
  static void sort(Samples& samples);

  const DeviceProfile& profile_;
  int64_t gpus_per_node_ = 8;
  // Each entry is sorted on the first query after a new sample.
  mutable std::map<std::pair<CollectiveKind, GroupShape>, Samples> samples_;
};

}  // namespace fxopt
