#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct InferPhaseOptions {
  template <class Self, class Field>
  static void visit(Self&, Field&&) {}
};

// Writes the phase of every node of a graph without phase markers. infer_phases() of
// ir/step/phases.h finds the phases, and each written phase gets the marker `inferred`. A graph
// with markers keeps its markers, but correct_phases() of the same file corrects single phases.
//
// Counters: forward and backward (nodes that got that phase), corrected. Notes: marked (nodes that
// already had a phase). Remarks: no-gradient-seed. Fails with kPhaseConflict if a node of a joint
// graph is marked forward but depends on a tangent. Complexity: O(nodes + edges).
Result<PassResult> infer_phase(Graph& graph, const InferPhaseOptions& options, PassContext& context);

}  // namespace fxopt
