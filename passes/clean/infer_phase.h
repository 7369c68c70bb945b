#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct InferPhaseOptions {
  template <class Self, class Field>
  static void visit(Self&, Field&&) {}
};

// Writes the phase (forward or backward) of every node of a graph without phase markers.
// infer_phases() of ir/step/phases.h finds the phases, and each written phase gets the marker
// `inferred`. If the graph has phase markers, the pass only corrects the phases of single nodes
// with correct_phases() of ir/step/phases.h. Existing markers stay unchanged.
//
// Counters: forward and backward (nodes that got that phase), corrected. Notes: marked (nodes that
// already had a phase). Remarks: no-gradient-seed (no output depends on the gradient of a loss).
// Fails with kPhaseConflict if a node of a joint graph has a forward phase marker but depends on a
// tangent. Complexity: O(nodes + edges).
Result<PassResult> infer_phase(Graph& graph, const InferPhaseOptions& options, PassContext& context);

}  // namespace fxopt
