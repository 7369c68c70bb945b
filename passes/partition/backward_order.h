#pragma once

#include "ir/graph/graph.h"
#include "ir/step/facts.h"
#include "passes/pass/pass.h"

namespace fxopt {

// Puts a backward graph in the order in which autograd runs it (reordering_to_mimic_autograd_engine of PyTorch): from the first
// node that reads a tangent on as they stand, and what stands before that right before the first node that depends on it, be it
// by a value or another dependence. Writes come first, as there, and so does what nothing depends on, which PyTorch loses. A
// graph in which nothing reads a tangent stays. With `keeps_lower` so does one that has the lower ideal peak as it is, with
// inputs that end with their last reader. Counter: reordered (nodes that stand after others than before).
// O(nodes log nodes + dependences).
void order_backward(Graph& backward, Facts& facts, bool keeps_lower, PassResult& result);

}  // namespace fxopt
