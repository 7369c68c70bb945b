#pragma once

#include <vector>

#include "ir/graph/module.h"
#include "ir/step/step.h"

namespace fxopt {

// Adds a graph that computes the whole step, and returns the id of that graph. The graph contains
// the nodes of all runs (StepRun) in order. If an input of a run takes a value from an earlier run,
// that value replaces the input. Analyses of a single graph can then be used for a step. If the
// step has only one run, returns that run's graph and adds nothing.
//
// The graph includes the caller's work between runs, as PyTorch's runtime performs it:
//
//   mutations: A run may return a new value for an input (OutputRole::kMutation). At the end of the
//              run, the new value is copied into the input and freed.
//   gradients: If two runs return a gradient for one parameter, the caller adds the later gradient
//              to the earlier gradient. The later gradient stays live until the later run ends.
//   saved:     A run may take a value that an earlier run computed and that the step does not
//              return. This value is freed after its last consumer in the later run. The reason is
//              that the caller keeps no reference to the arguments of a run (boxed arguments). If
//              the later run does not read the value, the value stays live until that run ends, as
//              in the code that torch.fx generates.
//   arriving:  Some inputs, such as tangents, arrive when a run begins. In the schedule, these
//              placeholders are at the beginning of that run, and therefore after the calls of
//              earlier runs. verify() would reject this order in a file. These inputs stay live
//              until the run ends.
//   the rest:  All other outputs are returned to the caller of the step. The caller keeps these
//              outputs to the end of the step.
//
// The name of a node is "label.name": the label of its run (StepRun::label), and its name in the
// original graph. A node gets its phase by the first of these rules that applies:
// - A placeholder is backward if it is a tangent. All other placeholders are forward.
// - Every other node of a graph of the kind backward is backward. If resolve_phases() returns the
//   phase forward for this node, the node is treated as recomputed (OriginKind::kRecomputed).
// - All other nodes have the phase that resolve_phases() returns for them in their own graph.
//
// If a graph runs more than once, each run gets its own storages. O(nodes of the runs).
//
// If `added` is not null, `added` receives the gradients that the caller adds to gradients of an
// earlier run. No node performs these additions.
GraphId compose_step(Module& module, const Step& step, std::vector<NodeId>* added = nullptr);

// The whole step as one graph, no matter how many graphs the step was split into.
struct StepGraph {
  GraphId graph;
  // The name that each placeholder has in its own graph, in schedule order. If two placeholders
  // have the same name, the second name ends in "#2".
  std::vector<StringId> inputs;
};

// Like compose_step(), but for the comparison of two steps that are split into graphs differently.
// Always adds a new graph, even if the step has only one run. A run is one execution of a graph.
// The outputs of the new graph are the outputs of all runs in order, including constants. Values
// saved for backward and values copied into an input are left out. If several runs return a
// gradient of the same parameter, each gradient is a separate output. O(nodes of the runs).
StepGraph compose_for_proof(Module& module, const Step& step);

}  // namespace fxopt
