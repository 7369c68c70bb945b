#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct InferPhaseOptions {
  template <class Self, class Field>
  static void visit(Self&, Field&&) {}
};

// Writes the phase of every node of a graph that carries no phase markers, as found by
// infer_phases() of ir/step/phases.h, with the marker `inferred`. A graph that carries markers
// keeps them.
//
// Counters: forward, backward (nodes that got that phase). Notes: marked (nodes that had one).
// Errors: kPhaseConflict if a node marked forward depends on a tangent.
// O(nodes + edges).
Result<PassResult> infer_phase(Graph& graph, const InferPhaseOptions& options, PassContext& context);

}  // namespace fxopt
