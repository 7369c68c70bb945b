#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// Elements that the storage of a result has room for, whatever the result's own sizes are.
struct Room {
  std::vector<Dim> sizes;  // as many as a dense tensor of these sizes has
  int64_t more = 0;        // and so many besides
};

// The room that a kernel leaves in the storage of tensor `index` of its results, where it makes the result larger first and shrinks it
// then (Op::holds, measured by scripts/peers/layouts.py); nothing where it does not, and where the recorded values do not say. Room is in
// elements of the result's dtype. O(rank).
std::optional<Room> find_room(const Graph& graph, NodeId call, size_t index, const Tensor& result);

}  // namespace fxopt
