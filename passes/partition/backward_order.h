#pragma once

#include "ir/graph/graph.h"
#include "ir/step/facts.h"
#include "passes/pass/pass.h"

namespace fxopt {

// Puts a backward graph into the order in which autograd runs it (PyTorch's
// reordering_to_mimic_autograd_engine). Nodes from the first consumer of a tangent on keep their
// order. Each earlier node moves directly before the first node that depends on it, by value or
// otherwise. Earlier writes come first, as in PyTorch. So do earlier nodes that nothing depends on,
// which PyTorch drops. A graph without a consumer of a tangent stays unchanged. With `keeps_lower`,
// a graph also stays unchanged if that gives the lower ideal peak, with inputs freed after their
// last consumer. Counter: reordered (nodes with another predecessor than before). O(nodes log nodes
// + dependences).
void order_backward(Graph& backward, Facts& facts, bool keeps_lower, PassResult& result);

}  // namespace fxopt
