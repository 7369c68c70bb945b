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

// How the ranks of a process group are spread over nodes. A node has as many consecutive ranks as
// GPUs.
struct GroupShape {
  int64_t ranks = 0;
  int64_t nodes = 0;
  int64_t ranks_per_node = 0;  // at most
  auto operator<=>(const GroupShape&) const = default;
};

// O(ranks log ranks).
GroupShape group_shape(const std::vector<int64_t>& ranks, int64_t gpus_per_node);

// Seconds of collectives, by the `collective` rows of a device profile. The rows are functions of
//
//   bytes                  that each rank gives
//   moved                  that each rank sends around a ring, see ring_bytes()
//   group.ranks            the group's size
//   group.nodes            the group's nodes
//   group.ranks_per_node   at most, on one node
//   group.log2_nodes       rounded up: the depth of a tree over the nodes
//
// and are scaled to measured runs, if any exist.
class LinkModel {
 public:
  // Refers to the profile.
  explicit LinkModel(const DeviceProfile& profile);

  // GPUs of a node: the profile's constant `node.gpus`, or 8 without it.
  int64_t gpus_per_node() const { return gpus_per_node_; }

  // Records a run of a collective of this size. The median of several runs of one size counts. A
  // larger size takes at least as long as each smaller one.
  void add_sample(CollectiveKind kind, const GroupShape& group, int64_t bytes, double seconds);

  struct Time {
    double seconds = 0;
    bool is_measured = false;  // scaled from runs
  };

  // Between two measured sizes, interpolates by their logarithms. Outside of these sizes, scales
  // the profile's formula by the nearest run's time over the formula's time for that run. Without a
  // formula, takes the smallest run's time below, and a time in proportion to the largest run
  // above. More bytes never take less time if that holds for the formula. Nothing if neither a run
  // nor a formula exists.
  //
  // O(size of the formula + log samples) after sorting. The first query for a kind and a group
  // since the last sample sorts, so queries from several threads need a lock.
  std::optional<Time> seconds(CollectiveKind kind, const GroupShape& group, int64_t bytes) const;

 private:
  struct Samples {
    std::vector<std::pair<int64_t, double>> runs;  // bytes, seconds
    bool is_sorted = false;
  };

  std::optional<double> formula(CollectiveKind kind, const GroupShape& group, int64_t bytes) const;
  static void sort(Samples& samples);

  const DeviceProfile& profile_;
  int64_t gpus_per_node_ = 8;
  // Sorted on the first query.
  mutable std::map<std::pair<CollectiveKind, GroupShape>, Samples> samples_;
};

}  // namespace fxopt
