#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"

namespace fxopt {

// One arc of a network. An arc of capacity kNoLimit is never cut.
struct Arc {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  uint32_t from = 0;
  uint32_t to = 0;
  int64_t capacity = 0;
};

struct MinCut {
  std::optional<int64_t> value;  // nullopt if a path of unlimited arcs leads from source to sink
  // True for each vertex that can still reach the sink in the residual network of a maximal flow.
  // These vertices are the sink side of the minimum cut nearest to the sink. They are the same for
  // every maximal flow. Empty if `value` is nullopt.
  std::vector<bool> is_sink_side;
  // The vertices of a path of unlimited arcs, from source to sink. Empty if `value` is present.
  std::vector<uint32_t> unlimited_path;
};

// Finds the smallest sum of capacities that separates the sink from the source. Capacities are 0 or
// more. The capacities of parallel arcs are added. The maximal flow comes from the algorithm of
// Boykov and Kolmogorov, as implemented in Boost.Graph.
//
// Fails with kLimit in two cases:
//   - The capacities add up to 2^61 or more. This sum leaves out arcs of capacity kNoLimit.
//   - The network has 2^31 arcs or more.
//
// The worst case is O(arcs * vertices^2 * flow), where `flow` is the maximal flow, MinCut::value.
// The time is near-linear if the paths from source to sink are short. In a training step, the paths
// between forward and backward are short.
Result<MinCut> min_cut(uint32_t num_vertices, std::span<const Arc> arcs, uint32_t source, uint32_t sink);

}  // namespace fxopt
