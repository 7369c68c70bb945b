#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/facts.h"
#include "passes/pass/pass.h"

namespace fxopt {

// The order in which autograd runs a backward graph (reordering_to_mimic_autograd_engine of PyTorch): from the first node that
// reads a tangent on as they stand, and what stands before that right before the first node that depends on it, be it by a
// value or another dependence. Writes come first, as there, and so does what nothing depends on, which PyTorch loses. Empty:
// nothing reads a tangent. O(nodes + dependences).
std::vector<NodeId> autograd_order(const Graph& backward, Facts& facts);

// Puts the backward graph in that order; with `keeps_lower` not where the present one has the lower ideal peak, with inputs
// that end with their last reader. Counter: reordered (nodes that stand after others than before).
void order_backward(Graph& backward, Facts& facts, bool keeps_lower, PassResult& result);

}  // namespace fxopt
