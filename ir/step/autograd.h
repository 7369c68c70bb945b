#pragma once

#include <cstdint>
#include <functional>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// How autograd treats a graph, and under which modes the nodes of the graph run.

namespace fxopt {

// A function that returns the phases of a graph. The function is called only if the phases are
// needed.
using PhaseSource = std::function<const PhaseMap&()>;

// Whether autograd may run through the graph when the graph is executed. `detach` and gradient
// modes then decide which gradients result. The answer is false only in these cases:
//   - A node is backward, by its mark or by inference. The gradients are then part of the graph.
//   - No tensor requires grad, and the kind of the graph is recorded (forward, joint, optimizer,
//     inference, ...). AOTAutograd's descriptions of inputs are not used for this decision, because
//     torch.export adds them to graphs through which autograd runs.
//
// `phases` returns resolve_phases() of the graph. A subgraph is differentiated with the graphs that
// run it. For a subgraph, the answer is true if the answer is true for any graph of the module that
// is not a subgraph. O(nodes), plus infer_phases() for a graph without marks.
bool may_be_differentiated(const Graph& graph, const PhaseSource& phases);

// Whether the operator returns a view of its operand through which no gradient flows. This is true
// for `detach` and for `view` with a dtype, even if the dtype stays the same. O(1).
bool ends_gradients(const Op& op);

// Returns the nodes through whose results a gradient may flow. may_be_differentiated() must be true
// for the graph. The result of such a node may be floating-point or complex. The node is an input,
// a call with an operand through which a gradient may flow, or a call whose storage is written.
// Detaches, and values computed only from constants and integers, are left out. O(nodes + edges +
// buffers).
IdMap<NodeId, bool> reached_by_gradients(const Graph& graph, const StorageMap& storages);

// Divides a graph into stretches. A stretch runs under one set of modes: gradient mode, inference
// mode and autocast. A call that changes a mode starts the next stretch. The same call may compute
// different values in two stretches, or record different things for autograd.
class ModeMap {
 public:
  explicit ModeMap(const Graph& graph);

  // Returns the number of the stretch in which the node runs, counted from 0. O(1).
  uint32_t of(NodeId node) const { return stretches_.get(node); }

 private:
  IdMap<NodeId, uint32_t> stretches_;  // empty if the graph changes no mode
};

}  // namespace fxopt
