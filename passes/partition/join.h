#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct JoinOptions {
  template <class Self, class Field>
  static void visit(Self& /*self*/, Field&& /*field*/) {}
};

// Joins a forward and a backward graph, from any partitioner, into one joint graph: the inverse of
// partition. Inputs are those of forward, then those of backward that forward does not save for it
// (tangents). Outputs are forward's without its saved values, then backward's. Calls of backward
// are marked backward, as nothing else identifies those that recompute forward values. Calls of
// forward are marked if they would otherwise count as backward. If the module is already a joint
// graph, the pass only remarks `joined`.
//
// Counters: bound (inputs of backward), phase-marks, graphs. Errors: kBadStep of find_step().
// kUnsupportedGraph if the step is not one run of a forward and one of a backward graph, if
// backward reads an input after the runtime gave it a new value, or if an input that forward does
// not give has the name of a forward input. O(nodes + edges).
Result<PassResult> join_pair(Module& module, const JoinOptions& options, PassContext& context);

}  // namespace fxopt
