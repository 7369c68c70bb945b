#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// The elements that a result's storage has room for, whatever the result's own sizes.
struct Room {
  std::vector<Dim> sizes;  // as many elements as a dense tensor of these sizes
  int64_t more = 0;        // plus this many
};

// The room that a kernel leaves in the storage of tensor `index` of its results because it first
// enlarges the result and then shrinks it (Op::holds, measured by scripts/peers/layouts.py).
// Nothing if it does not, or if the recorded values do not show it. Room is in elements of the
// result's dtype. O(rank).
std::optional<Room> find_room(const Graph& graph, NodeId call, size_t index, const Tensor& result);

}  // namespace fxopt
