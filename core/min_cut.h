#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"

namespace fxopt {

// One arc of a network. A capacity of kNoLimit is never cut.
struct Arc {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  uint32_t from = 0;
  uint32_t to = 0;
  int64_t capacity = 0;
};

struct MinCut {
  std::optional<int64_t> value;  // nothing: a path without limits leads from the source to the sink
  // Of the minimal cuts, the one nearest to the sink: what can still reach it when the flow is maximal. So the cut does not
  // depend on how the flow was found. Empty without a value.
  std::vector<bool> is_sink_side;
  std::vector<uint32_t> unlimited_path;  // without a value: its vertices, from the source to the sink
};

// The smallest sum of capacities that parts the sink from the source. Capacities are 0 or more; arcs between the same two
// vertices add up. The maximal flow is Boost.Graph's, by Boykov and Kolmogorov's algorithm.
//
// Errors: kLimit: the sum of limited capacities is 2^61 or more; 2^31 arcs or more.
// O(arcs * vertices^2 * value) at worst, near-linear where paths from source to sink are short, as between forward and
// backward of a training step.
Result<MinCut> min_cut(uint32_t num_vertices, std::span<const Arc> arcs, uint32_t source, uint32_t sink);

}  // namespace fxopt
