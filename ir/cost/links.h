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

// How the ranks of a process group lie on nodes, of which each has as many consecutive ranks as it has GPUs.
struct GroupShape {
  int64_t ranks = 0;
  int64_t nodes = 0;
  int64_t ranks_per_node = 0;  // at most
  auto operator<=>(const GroupShape&) const = default;
};

// O(ranks log ranks).
GroupShape group_shape(const std::vector<int64_t>& ranks, int64_t gpus_per_node);

// Seconds of collectives: by the `collective` rows of a device profile, as functions of
//
//   bytes                                                   that each rank gives
//   moved                                                   that each rank sends around a ring, see ring_bytes()
//   group.ranks, group.nodes, group.ranks_per_node          of the group
//   group.log2_nodes                                        rounded up: the depth of a tree over the nodes
//
// and, where runs were measured, scaled to what they took.
class LinkModel {
 public:
  // Refers to the profile.
  explicit LinkModel(const DeviceProfile& profile);

  // GPUs of a node, which the profile's constant `node.gpus` says; 8 where it does not.
  int64_t gpus_per_node() const { return gpus_per_node_; }

  // A run of a collective of this size. Of several of one size the median counts; more bytes never take less time, so
  // that of a smaller size is the least for a larger one.
  void add_sample(CollectiveKind kind, const GroupShape& group, int64_t bytes, double seconds);

  struct Time {
    double seconds = 0;
    bool is_measured = false;  // scaled from runs
  };

  // Where sizes around this one were measured, between these by their logarithms. Outside of them by the profile's
  // formula times what the nearest run took over what the formula says of it; without a formula, as long as the
  // smallest run, or in proportion to the largest. Never less for more bytes where the formula gives never less. Nothing
  // where neither tells. O(size of the formula + log samples), after sorting what was added: the first
  // question about a kind and a group since the last sample sorts, so questions from several threads need a lock.
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
  mutable std::map<std::pair<CollectiveKind, GroupShape>, Samples> samples_;  // sorted when first asked
};

}  // namespace fxopt
