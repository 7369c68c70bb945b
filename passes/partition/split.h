#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/step/facts.h"
#include "ir/step/halves.h"
#include "passes/pass/pass.h"

// Cuts a joint graph into two graphs, after a partitioner has decided which values to save.

namespace fxopt {

// The contents of the two graphs, and the values that backward gets from forward. The plan is made
// on the unchanged graph.
struct SplitPlan {
  JointHalves halves;
  std::vector<NodeId> forward, backward;  // calls and attributes, in schedule order
  // Forward returns these values after its other outputs, in this order. Tensors come first, then
  // objects that are not tensors. Each kind is in the order of forward.
  std::vector<NodeId> saved;
  // The symbols that backward reads, and the symbols in the sizes of the inputs of backward. Values
  // computed from symbols come last.
  std::vector<NodeId> saved_symbols;
  // The place of the first part of each tensor subclass. The place is counted among the primals,
  // the arriving inputs, or the outputs of the graph that has the parts.
  struct LayoutPlace {
    bool is_forward = false;
    int64_t first = 0;
  };
  std::vector<LayoutPlace> layouts;
};

// The graphs that are made from the joint graph.
enum class SplitFor : uint8_t {
  kTraining,   // both halves
  kInference,  // only forward, which then saves nothing
};

// Plans the cut. For a value with several results, the results are saved. If both halves read an
// attribute, both graphs get this attribute.
//
// Errors: kUnsupportedGraph for
// - a call of forward that reads a value of backward
// - a call of the optimizer
// - an input of role saved_value
// - a forward output that depends on a tangent
// - a forward output that comes after the first gradient
// - a forward node that must stay after a backward node (DependenceMap::violation), for example a
//   draw after a draw, or a write to memory that backward reads before the write
// - a tensor subclass whose parts are in both graphs, or do not stay together
//
// For training, kUnsupportedGraph also for
// - a value with several results that backward reads as a whole
// - a saved value that shares memory with an input, if the runtime writes to this input between the
//   two graphs
//
// O(nodes + edges + dependences).
Result<SplitPlan> plan_split(const Graph& graph, Facts& facts, SplitFor what);

// Replaces `graph` by the graphs `forward` and `backward`, and returns backward. Records the
// bindings of the two graphs as the module's invocations. Nodes keep their names and uids. A saved
// value is an output of forward with the role saved_value. The same value is an input of backward
// with this role and with saved_from_output. Counters: saved, saved-symbols, graphs. O(nodes +
// edges).
GraphId split(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

// Replaces `graph` by a graph `forward` of kind inference, and returns that graph. The new graph
// contains all of forward, including the nodes whose values only the removed backward needed.
// Counters: graphs. O(nodes + edges).
GraphId extract_forward(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

}  // namespace fxopt
