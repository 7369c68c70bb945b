#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/values/geometry.h"

namespace fxopt {

// The geometry of a view, computed from its operands.
struct ViewGeometry {
  enum class Outcome : uint8_t {
    kSame,        // the same tensor as the argument
    kView,        // a view
    kCopy,        // a copy, because no view has these sizes
    kImpossible,  // the call raises
    kUnknown,     // the outcome depends on unknown values, or the operator is not supported
  };
  Outcome outcome = Outcome::kUnknown;
  std::vector<Geometry> tensors;  // for kView and kCopy: one for each returned tensor
};

// Returns the integer value of a node of the graph, or nothing if the value is not an integer.
using SymIntOfNode = std::function<std::optional<SymInt>(NodeId)>;

// Returns the geometry of the result of the call `node` if its first argument has the geometry
// `from`. For calls that change the tensor in place (`t_`), this is the tensor's geometry after the
// call. The geometry depends on `from` and on the other arguments. No recorded value is read.
//
// The views that training graphs use are computed by ATen's rules (TensorShape.cpp,
// TensorUtils.cpp, ExpandUtils.cpp). The outcome of any other operator is kUnknown. O(rank +
// tensors returned).
ViewGeometry view_geometry(const Graph& graph, NodeId node, const Geometry& from, const SymIntOfNode& integer_of);

}  // namespace fxopt
