#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct JoinOptions {
  template <class Self, class Field>
  static void visit(Self& /*self*/, Field&& /*field*/) {}
};

// Joins a forward and a backward graph, from any partitioner, into one joint graph. This is the
// inverse of the pass `partition`. If the module is already a joint graph, the pass only writes the
// remark `joined`.
//
// In the joint graph, the inputs of forward come first, then the inputs of backward that are not
// values of forward (tangents). The outputs of forward come first, without the saved values, then
// the outputs of backward. Calls of backward get a backward phase marker, because nothing else
// identifies the calls that recompute forward values. A call of forward gets a forward phase marker
// if fxopt would otherwise treat the call as backward.
//
// Counters: bound (inputs of backward that are values of forward), phase-marks, graphs.
//
// Errors: kBadStep of find_step(). kUnsupportedGraph in three cases:
// - The step is not one run of a forward graph and one run of a backward graph.
// - Backward reads an input of forward, or a value that shares memory with this input, and the
//   runtime updates this input between forward and backward. In a joint graph, backward would read
//   the input before the update.
// - An input of backward has the name of a forward input, but is not a value of forward.
//
// Complexity: O(nodes + edges).
Result<PassResult> join_pair(Module& module, const JoinOptions& options, PassContext& context);

}  // namespace fxopt
