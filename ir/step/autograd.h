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

// Whether autograd may run through the graph when the graph is executed. If so, `detach` calls and
// gradient modes decide which gradients result. This function ignores `detach` calls and gradient
// modes. Returns false only in these cases:
//   - A node is backward, by its mark or by inference. The gradients are then part of the graph.
//   - No tensor requires grad, and the kind of the graph is recorded (forward, joint, optimizer,
//     inference, ...). AOTAutograd's descriptions of inputs are not used for this decision, because
//     torch.export adds them to graphs through which autograd runs.
//
// `phases` returns resolve_phases() of the graph. A subgraph (GraphKind::kSubgraph) is
// differentiated together with the graphs that run the subgraph. The function therefore ignores the
// nodes of a subgraph. Instead, it applies the two cases above to every graph of the module that is
// not a subgraph. It returns true if autograd may run through at least one of these graphs.
// O(nodes), plus infer_phases() for a graph without marks.
bool may_be_differentiated(const Graph& graph, const PhaseSource& phases);

// Whether the operator returns a view of its operand through which no gradient flows. This is true
// for `detach` and for `view` with a dtype, even if the dtype stays the same. O(1).
bool ends_gradients(const Op& op);

// Returns the nodes through whose results a gradient may flow. may_be_differentiated() must be true
// for the graph. A node qualifies if its result is floating-point, complex or of unknown dtype, if
// ends_gradients() is false, and if one of these conditions is met:
//   - The node is an input, an attribute or another node that is not a call.
//   - A gradient may flow through one of the node's operands.
//   - Some node writes to the storage of the result.
// O(nodes + edges + buffers).
IdMap<NodeId, bool> reached_by_gradients(const Graph& graph, const StorageMap& storages);

// Divides the schedule of a graph into stretches. All nodes of a stretch run under one gradient
// mode, inference mode and autocast. A call that changes a mode starts the next stretch. Two equal
// calls in different stretches may compute different values, and autograd may record the two calls
// differently.
class ModeMap {
 public:
  explicit ModeMap(const Graph& graph);

  // Returns the number of the stretch in which the node runs, counted from 0. O(1).
  uint32_t of(NodeId node) const { return stretches_.get(node); }

 private:
  IdMap<NodeId, uint32_t> stretches_;  // empty if the graph changes no mode
};

}  // namespace fxopt
