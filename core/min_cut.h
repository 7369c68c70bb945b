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
  std::optional<int64_t> value;  // nullopt: a path of unlimited arcs leads from source to sink
  // Among the minimal cuts, the one nearest to the sink: the vertices that can still reach the sink
  // when the flow is maximal. Thus the cut does not depend on how the flow was found. Empty without
  // a value.
  std::vector<bool> is_sink_side;
  std::vector<uint32_t> unlimited_path;  // without a value: vertices from source to sink
};

// Finds the smallest sum of capacities that separates the sink from the source. Capacities are 0 or
// more; parallel arcs add up. The maximal flow comes from Boost.Graph's implementation of Boykov
// and Kolmogorov's algorithm.
//
// Errors: kLimit if the sum of limited capacities is 2^61 or more, or if there are 2^31 arcs or
// more. O(arcs * vertices^2 * value) at worst. Near-linear if paths from source to sink are short,
// as between forward and backward of a training step.
Result<MinCut> min_cut(uint32_t num_vertices, std::span<const Arc> arcs, uint32_t source, uint32_t sink);

}  // namespace fxopt
