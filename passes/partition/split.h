#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/step/facts.h"
#include "ir/step/halves.h"
#include "passes/pass/pass.h"

// A joint graph as two: what a partitioner does once it is decided what is saved.

namespace fxopt {

// What each of the two graphs gets, and what forward hands to backward. Decided on a graph that does not change.
struct SplitPlan {
  JointHalves halves;
  std::vector<NodeId> forward, backward;  // calls and attributes, in their order
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

// What is to be made of the graph.
enum class SplitFor : uint8_t {
  kTraining,   // both halves
  kInference,  // forward, which saves nothing
};

// Of a value with several parts, parts are saved; attributes are read again by both.
//
// Errors: kUnsupportedGraph: a call marked forward that reads a tangent; one of the optimizer; a forward output that depends on
// a tangent; a node of forward that must stay after one of backward (DependenceMap::violation): a draw after a draw, a write to
// what backward reads before it; a tensor subclass with parts in both graphs. For training also a value of several parts that
// backward reads as a whole, and an input on memory that the runtime writes in between. O(nodes + edges + dependences).
Result<SplitPlan> plan_split(const Graph& graph, Facts& facts, SplitFor what);

// Puts graphs `forward` and `backward` where `graph` is, and writes how they are bound as the module's invocations. Nodes
// keep their names and uids. What is saved is an output of role saved_value and an input of that role with
// saved_from_output. Gives backward. Counters: saved, saved-symbols, graphs. O(nodes + edges).
GraphId split(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

// Puts a graph `forward` of the kind inference where `graph` is: what forward does, also for backward alone, which is gone.
// Counters: graphs. O(nodes + edges).
GraphId extract_forward(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

}  // namespace fxopt
