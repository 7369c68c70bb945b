#pragma once

#include <vector>

#include "ir/graph/module.h"
#include "ir/step/step.h"

namespace fxopt {

// Adds a graph that computes the whole step, and returns the id of that graph. The graph contains
// the runs in order. The inputs of each run are replaced by the values to which they are bound.
// Analyses of one graph (memory, expressions) can then be used for a step. If the step has only one
// run, returns that run's graph and adds nothing.
//
// The graph includes the caller's work between runs, as PyTorch's runtime performs it:
//
//   mutations  A run may return a new value for an input (OutputRole::kMutation). At the end of the
//              run, the new value is copied into the input and freed.
//   gradients  If a later run returns a gradient for the same parameter, this gradient is added to
//              the earlier gradient. The later gradient stays live until the end of the later run.
//   saved      A value that a run takes is freed after its last consumer in that run, because the
//              caller keeps no reference to its arguments (boxed). A bound input that the run does
//              not read stays live to the end of the run, as in the code that torch.fx generates.
//   arriving   Some inputs arrive when a run begins. In the schedule, these placeholders are at the
//              beginning of that run, and therefore after the calls of earlier runs. verify() would
//              reject this order in a file. These inputs stay live until the run ends.
//   the rest   All other outputs are returned to the caller of the step. The caller keeps these
//              outputs to the end of the step.
//
// The names of the nodes are "label.name". The phase of a node is the phase that resolve_phases()
// finds in the node's own graph. All nodes of a backward graph are backward. If a node of a
// backward graph has the phase forward in that graph, the node is treated as recomputed. If a graph
// runs again, the second run gets its own storages. O(nodes of the runs).
//
// If `added` is not null, `added` receives the gradients that are added to gradients of an earlier
// run. No node performs these additions.
GraphId compose_step(Module& module, const Step& step, std::vector<NodeId>* added = nullptr);

// The whole step as one graph, no matter how many graphs the step was split into.
struct StepGraph {
  GraphId graph;
  // The name that each placeholder has in its own graph, in schedule order. If two placeholders
  // have the same name, the second name ends in "#2".
  std::vector<StringId> inputs;
};

// Like compose_step(), but for the comparison of two steps that are split differently. A step of
// one run is composed as well. The outputs are the outputs of all runs, run by run, including
// constants. Values saved for backward and values copied into an input are left out. Each gradient
// of a parameter is an output of its own. O(nodes of the runs).
StepGraph compose_for_proof(Module& module, const Step& step);

}  // namespace fxopt
