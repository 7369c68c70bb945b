#pragma once

#include "ir/graph/graph.h"

namespace fxopt {

// True when both are known to be the same number: equal constants, or equal as polynomials.
bool same_dim(const Module& module, const Dim& a, const Dim& b);

// True when two tensors on one storage would be the same tensor: dtype, layout, sizes, strides, offset, device,
// conjugate and negative bits, subclass and placements agree. Storage ids and requires_grad are not asked for. O(rank).
bool same_metadata(const Module& module, const Tensor& a, const Tensor& b);

// The same for whole values of one graph: kinds and elements agree. An absent value agrees only with an absent one.
// O(size of the value).
bool same_metadata(const Graph& graph, ValueId a, ValueId b);

// The one tensor a node produces; nullptr when it produces something else or nothing is recorded.
const Tensor* single_tensor(const Graph& graph, NodeId node);

}  // namespace fxopt
