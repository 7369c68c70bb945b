#pragma once

#include "ir/graph/graph.h"
#include "ir/step/facts.h"
#include "passes/pass/pass.h"

namespace fxopt {

// Puts a backward graph into the order in which autograd runs it (PyTorch's
// reordering_to_mimic_autograd_engine). The first consumer of a tangent and all nodes after it keep
// their order. Each earlier node moves directly before the first node that depends on it, by value
// or otherwise. Two kinds of earlier nodes move to the start of the graph instead:
// - writes, as in PyTorch
// - unneeded nodes. The first consumer of a tangent and the nodes after this consumer depend on
//   none of these nodes, directly or indirectly. PyTorch drops these nodes.
//
// A graph without a consumer of a tangent stays unchanged. If `keeps_lower` is true, a graph also
// stays unchanged if its present order has the lower peak of live bytes. The measurement assumes
// that inputs are freed after their last consumer.
//
// Counter: reordered (nodes that now follow a different node). Complexity: O(nodes log nodes +
// dependences).
void order_backward(Graph& backward, Facts& facts, bool keeps_lower, PassResult& result);

}  // namespace fxopt
