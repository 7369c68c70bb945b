#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/step/facts.h"
#include "passes/pass/pass.h"

// A joint graph as two: what a partitioner does once it is decided what is saved.

namespace fxopt {

// What each of the two graphs gets, and what forward hands to backward. Decided on a graph that does not change.
struct SplitPlan {
  std::vector<NodeId> forward, backward;  // calls and attributes, in their order
  std::vector<NodeId> primals, arriving;  // placeholders of each: of backward, tangents and states that it alone reads
  size_t num_forward_outputs = 0;         // of the leaves of the output, which come first
  // What forward returns besides, in this order, each part as it comes in forward.
  std::vector<NodeId> saved;          // tensors, then objects that are no tensors
  std::vector<NodeId> saved_symbols;  // those that backward reads, and those that sizes of its inputs hold
  // Where the parts of each tensor subclass go: their first place among primals or arriving, among outputs of each graph.
  struct LayoutPlace {
    bool is_forward = false;
    int64_t first = 0;
  };
  std::vector<LayoutPlace> layouts;
};

// Forward is what Facts::phases() says is no backward, with all getitems of forward values; backward is the rest. Of a value
// with several parts, parts are saved; attributes are read again by both.
//
// Errors: kUnsupportedGraph: a call marked forward that reads a tangent; one of the optimizer; a forward output that depends on a tangent; a value of several parts that backward reads as a
// whole; a node of forward that must stay after one of backward (DependenceMap::violation): a draw after a draw, a write to
// what backward reads before it; an input on memory that the runtime writes in between; a tensor subclass with parts in both graphs. O(nodes + edges + dependences).
Result<SplitPlan> plan_split(const Graph& graph, Facts& facts);

// Puts graphs `forward` and `backward` where `graph` is, and writes how they are bound as the module's invocations. Nodes
// keep their names and uids. What is saved is an output of role saved_value and an input of that role with
// saved_from_output. Counters: saved, saved-symbols, graphs. O(nodes + edges).
void split(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

}  // namespace fxopt
