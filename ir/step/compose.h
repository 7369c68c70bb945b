#pragma once

#include <vector>

#include "ir/graph/module.h"
#include "ir/step/step.h"

namespace fxopt {

// Adds a graph that does what the step does, and gives its id: the runs in their order, each reading what it is bound
// to. What is asked of one graph (memory, expressions) can so be asked of a step. Of a step with one run it is that
// run's graph, and nothing is added.
//
// Between the runs the caller does what PyTorch's runtime does:
//
//   mutations   an input's new value that a run returns (OutputRole::kMutation) is copied into the input at the end of
//               the run, and goes
//   gradients   what a later run of the same graph returns for the same parameter is added to what the first returned:
//               it is there until the end of that run
//   saved       what a run is bound to ends with its last reader in it, as arguments are given away (boxed). A bound
//               input that the run does not read stays to the end of the run, as in the code that torch.fx generates
//   arriving    inputs that come as a run begins stand there in the schedule, and so after calls, which verify() would
//               refuse in a file; they are there until the run ends
//   the rest    of the outputs goes to the step's caller, who has it to the end
//
// Nodes are named "label.name", and have the phases resolve_phases() finds in their own graph; those of a backward graph
// are backward, and recomputed where they are marked as forward. Storages of a graph that runs again are its own.
// O(nodes of the runs). `added`, where it is not null, gets the gradients that are added to those of an earlier run: no node adds them.
GraphId compose_step(Module& module, const Step& step, std::vector<NodeId>* added = nullptr);

// A step as one graph, whatever it was cut into.
struct StepGraph {
  GraphId graph;
  // What each placeholder is called in its own graph, in schedule order; the second of a name has "#2" after it.
  std::vector<StringId> inputs;
};

// As compose_step(), for comparing two steps that are cut otherwise: a step of one run is composed, too, and the outputs
// are all that the runs return, run by run, constants among them, but what is saved for backward and what went into an
// input. Gradients of one parameter stand each by itself. O(nodes of the runs).
StepGraph compose_for_proof(Module& module, const Step& step);

}  // namespace fxopt
