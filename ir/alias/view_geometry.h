#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/values/geometry.h"

namespace fxopt {

// What a view shows, computed from what it is given.
struct ViewGeometry {
  enum class Outcome : uint8_t {
    kSame,        // the very tensor that it is given
    kView,        // a view
    kCopy,        // a copy, as no view has these sizes
    kImpossible,  // the call raises
    kUnknown,     // that depends on what is not known, or on an operator that is not known here
  };
  Outcome outcome = Outcome::kUnknown;
  std::vector<Geometry> tensors;  // kView, kCopy: one for each that the call returns
};

// The integer that a node of the graph is, where it is one.
using SymIntOfNode = std::function<std::optional<SymInt>(NodeId)>;

// What the call `node` gives of a tensor `from` as its first argument, by its other arguments alone: no recorded value is
// read. Of calls that change the tensor in place (`t_`), what it is then. Knows the views of training graphs, by ATen's
// rules (TensorShape.cpp, TensorUtils.cpp, ExpandUtils.cpp); any other operator is kUnknown. O(rank + tensors returned).
ViewGeometry view_geometry(const Graph& graph, NodeId node, const Geometry& from, const SymIntOfNode& integer_of);

}  // namespace fxopt
