#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// The number of elements that fit into a result's storage. The result may have fewer elements.
struct Room {
  std::vector<Dim> sizes;  // a dense tensor of these sizes fits into the storage
  int64_t more = 0;        // number of elements that fit in addition to a dense tensor of `sizes`
};

// Returns the number of elements that fit into the storage of tensor `index` of the call's results.
// Some kernels first enlarge a result and then shrink the result, which leaves unused room
// (Op::holds, measured by scripts/peers/layouts.py). Returns nothing if the kernel leaves no unused
// room, or if the recorded values do not show the room. Elements have the result's dtype. O(rank).
std::optional<Room> find_room(const Graph& graph, NodeId call, size_t index, const Tensor& result);

}  // namespace fxopt
