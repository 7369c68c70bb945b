#pragma once

#include <cstdint>
#include <functional>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// How autograd treats a graph, and under which modes its nodes run.

namespace fxopt {

// Returns the phases of a graph. Called only if needed.
using PhaseSource = std::function<const PhaseMap&()>;

// Whether autograd may run through the graph when it is executed, so that `detach` and gradient
// modes decide which gradients result. False only if the graph shows that it will not:
//   - a node is backward, marked or inferred: the gradients were traced
//   - no tensor requires grad, and the graph is recorded as forward, joint, optimizer, inference,
//     ... AOTAutograd's descriptions of inputs decide nothing: torch.export lets it describe a
//     graph that autograd runs through
//
// `phases` returns resolve_phases() of the graph. A subgraph is differentiated with the graphs that
// run it: true if any other graph of the module may be. O(nodes), plus infer_phases() for a graph
// without marks.
bool may_be_differentiated(const Graph& graph, const PhaseSource& phases);

// Whether gradients end at the operator's result, a view of its operand: `detach`, and a view as a
// dtype, even the same one. O(1).
bool ends_gradients(const Op& op);

// The nodes whose results a gradient may flow through, in a graph that may_be_differentiated().
// Their results may be floating-point or complex, and they are inputs, calls with such an operand,
// or calls whose storage is written. A detach and values computed from constants and integers are
// left out. O(nodes + edges + buffers).
IdMap<NodeId, bool> reached_by_gradients(const Graph& graph, const StorageMap& storages);

// The stretches of a graph that run under one set of modes: gradient mode, inference mode,
// autocast. A call that changes a mode begins the next stretch. The same call may compute, or
// record for autograd, different things in two stretches.
class ModeMap {
 public:
  explicit ModeMap(const Graph& graph);

  // The stretch that the node runs in, counted from 0. O(1).
  uint32_t of(NodeId node) const { return stretches_.get(node); }

 private:
  IdMap<NodeId, uint32_t> stretches_;  // empty in a graph that changes no mode
};

}  // namespace fxopt
