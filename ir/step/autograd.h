#pragma once

#include <cstdint>
#include <functional>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// What a graph means to autograd, and under which modes its nodes run.

namespace fxopt {

// Gives the phases of a graph where they are needed.
using PhaseSource = std::function<const PhaseMap&()>;

// Whether autograd may run through the graph when it is executed, so that `detach` and gradient modes decide which
// gradients come out. False only where the graph shows that it will not:
//   - a node of it is backward, marked or inferred: the gradients were traced;
//   - no tensor of it requires grad, and it is recorded as forward, joint, optimizer, inference, ... What AOTAutograd says
//     of inputs decides nothing: torch.export lets it describe a graph that autograd runs through.
// `phases` gives resolve_phases() of the graph. A subgraph is differentiated with the graphs that run it: true if any other graph of the module may be.
// O(nodes), plus infer_phases() for a graph without marks.
bool may_be_differentiated(const Graph& graph, const PhaseSource& phases);

// Whether gradients end at what the operator returns, a view of what it is given: `detach`, and a view as a dtype, its own too. O(1).
bool ends_gradients(const Op& op);

// The nodes whose results a gradient may flow through, in a graph that may_be_differentiated(): results that may be
// floating point or complex, of inputs, of calls given such a result, and of calls whose storage is written. A detach
// and whatever is made of constants and integers are none.
// O(nodes + edges + buffers).
IdMap<NodeId, bool> reached_by_gradients(const Graph& graph, const StorageMap& storages);

// The stretches of a graph that run under one set of modes: gradient mode, inference mode, autocast. A call that
// changes one begins the next stretch. The same call computes, or records for autograd, different things in two of
// them.
class ModeMap {
 public:
  explicit ModeMap(const Graph& graph);

  // The stretch that the node runs in, counted from 0. O(1).
  uint32_t of(NodeId node) const { return stretches_.get(node); }

 private:
  IdMap<NodeId, uint32_t> stretches_;  // empty in a graph that changes no mode
};

}  // namespace fxopt
