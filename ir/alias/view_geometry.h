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
    kSame,        // the very tensor that it is given
    kView,        // a view
    kCopy,        // a copy, because no view has these sizes
    kImpossible,  // the call raises
    kUnknown,     // it depends on unknown values, or the operator is not known here
  };
  Outcome outcome = Outcome::kUnknown;
  std::vector<Geometry> tensors;  // kView, kCopy: one for each returned tensor
};

// The integer value of a node of the graph; nothing if it is no integer.
using SymIntOfNode = std::function<std::optional<SymInt>(NodeId)>;

// The geometry that the call `node` gives a tensor `from`, its first argument, computed from its
// other arguments alone: no recorded value is read. For calls that change the tensor in place
// (`t_`), the tensor's geometry afterwards. Knows the views of training graphs by ATen's rules
// (TensorShape.cpp, TensorUtils.cpp, ExpandUtils.cpp); any other operator is kUnknown.
// O(rank + tensors returned).
ViewGeometry view_geometry(const Graph& graph, NodeId node, const Geometry& from, const SymIntOfNode& integer_of);

}  // namespace fxopt
