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
  // For each tensor subclass of the joint graph (SubclassLayout), the place of its first inner
  // tensor. `is_forward` is true if the inner tensors belong to forward, and false if they belong
  // to backward. If the subclass is an output, `first` is an index into the outputs of forward or
  // of backward. If the subclass is an input, `first` is an index into the inputs of forward
  // (JointHalves::primals) or of backward (JointHalves::arriving).
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

// Plans the cut. If a call returns several results, each result that backward reads is saved on its
// own, not the tuple. If both halves read an attribute, both graphs get this attribute.
//
// Errors: kUnsupportedGraph for
// - a forward node that reads a value of backward
// - a call of the optimizer phase
// - an input of role saved_value
// - a forward output that depends on a tangent
// - a forward output that comes after the first gradient
// - a forward node that depends on an earlier backward node (DependenceMap::violation). For
//   example, both nodes draw random numbers, or the forward node writes to memory that the backward
//   node reads.
// - a tensor subclass whose inner tensors go to different graphs, or are no longer next to each
//   other
//
// For training, kUnsupportedGraph also for
// - a tuple, list or dict that backward reads as a whole, without getitem
// - a saved value that shares memory with an input, if the runtime writes to this input between the
//   two graphs
//
// O(nodes + edges + dependences).
Result<SplitPlan> plan_split(const Graph& graph, Facts& facts, SplitFor what);

// Replaces `graph` by the graphs `forward` and `backward`, and returns backward. Replaces the
// module's invocations (Module::invocations) by one execution of each graph. For each saved input
// of backward, a binding states which forward output supplies the value. Nodes keep their names and
// uids. A saved value is an output of forward with the role saved_value. The same value is an input
// of backward with this role and with saved_from_output. Counters: saved, saved-symbols, graphs.
// O(nodes + edges).
GraphId split(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

// Replaces `graph` by a graph `forward` of kind inference, and returns that graph. The new graph
// contains all of forward, including the nodes whose values only the removed backward needed.
// Counters: graphs. O(nodes + edges).
GraphId extract_forward(Module& module, GraphId graph, const SplitPlan& plan, PassResult& result);

}  // namespace fxopt
