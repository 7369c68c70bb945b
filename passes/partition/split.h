#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/step/facts.h"
#include "ir/step/halves.h"
#include "passes/pass/pass.h"

// Cuts a joint graph in two, after a partitioner has decided what to save.

namespace fxopt {

// The contents of the two graphs, and the values that forward hands to backward. Planned on an
// unchanged graph.
struct SplitPlan {
  JointHalves halves;
  std::vector<NodeId> forward, backward;  // calls and attributes, in schedule order
  // Further outputs of forward, in this order; each list is in forward's order.
  std::vector<NodeId> saved;          // tensors, then objects that are not tensors
  std::vector<NodeId> saved_symbols;  // those that backward reads, and those in sizes of its inputs
  // Place of the first part of each tensor subclass, among primals, arriving inputs or the outputs
  // of its graph.
  struct LayoutPlace {
    bool is_forward = false;
    int64_t first = 0;
  };
  std::vector<LayoutPlace> layouts;
};

// The graphs to make from the joint graph.
enum class SplitFor : uint8_t {
  kTraining,   // both halves
  kInference,  // forward only, which saves nothing
};

// A value with several results is saved as its results. Both halves read attributes themselves.
//
// Errors: kUnsupportedGraph for
// - a call marked forward that reads a tangent;
// - a call of the optimizer;
// - a forward output that depends on a tangent;
// - a forward node that must stay after a backward node (DependenceMap::violation): a draw after a
//   draw, a write to memory that backward reads before it;
// - a tensor subclass with parts in both graphs;
// - for training, a value with several results that backward reads as a whole, and an input on
//   memory that the runtime writes in between.
// O(nodes + edges + dependences).
Result<SplitPlan> plan_split(const Graph& graph, Facts& facts, SplitFor what);

// Replaces `graph` by graphs `forward` and `backward`, and records their bindings as the module's
// invocations. Nodes keep their names and uids. A saved value is an output of role saved_value, and
// an input of that role with saved_from_output. Returns backward. Counters: saved, saved-symbols,
// graphs. O(nodes + edges).
GraphId split(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

// Replaces `graph` by a graph `forward` of kind inference: all of forward, including the parts that
// served only the removed backward. Counters: graphs. O(nodes + edges).
GraphId extract_forward(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

}  // namespace fxopt
