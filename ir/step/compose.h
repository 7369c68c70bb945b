#pragma once

#include <vector>

#include "ir/graph/module.h"
#include "ir/step/step.h"

namespace fxopt {

// Adds a graph that computes the whole step, and returns its id: the runs in order, each with the
// values it is bound to. Analyses of one graph (memory, expressions) can thus be used for a step.
// For a step with one run, returns that run's graph and adds nothing.
//
// The graph includes the caller's work between runs, as PyTorch's runtime does it:
//
//   mutations  the new value that a run returns for an input (OutputRole::kMutation) is copied into
//              the input at the end of the run, and freed
//   gradients  a gradient that a later run returns for the same parameter is added to the first
//              one. It is live until the end of that later run
//   saved      a value that a run takes ends with its last consumer there, as arguments are given
//              away (boxed). A bound input that the run does not read stays live to the end of the
//              run, as in the code that torch.fx generates
//   arriving   inputs that arrive when a run begins are at that place in the schedule, and so after
//              calls, which verify() would refuse in a file. They are live until the run ends
//   the rest   other outputs are returned to the step's caller, which keeps them to the end
//
// Nodes are named "label.name" and have the phase that resolve_phases() finds in their own graph.
// All nodes of a backward graph are backward; those with phase forward there count as recomputed. A
// graph that runs again gets its own storages. O(nodes of the runs).
//
// `added`, if not null, receives the gradients that are added to those of an earlier run. No node
// performs these additions.
GraphId compose_step(Module& module, const Step& step, std::vector<NodeId>* added = nullptr);

// A step as one graph, however it was cut.
struct StepGraph {
  GraphId graph;
  // The name of each placeholder in its own graph, in schedule order. The second of a name ends in
  // "#2".
  std::vector<StringId> inputs;
};

// As compose_step(), for comparing two steps that are cut differently. A step of one run is
// composed as well. The outputs are those of all runs, run by run, with constants, but without
// values saved for backward and values copied into an input. Each gradient of a parameter is an
// output of its own. O(nodes of the runs).
StepGraph compose_for_proof(Module& module, const Step& step);

}  // namespace fxopt
