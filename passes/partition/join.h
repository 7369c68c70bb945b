#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct JoinOptions {
  template <class Self, class Field>
  static void visit(Self& /*self*/, Field&& /*field*/) {}
};

// Makes a joint graph of a forward and a backward graph, whoever cut them: the inverse of partition. Inputs are those of
// forward, then those of backward that forward does not save for it (tangents); outputs are forward's without what it saves,
// then backward's. Calls of backward are marked as such, as nothing else tells of those that compute again what forward
// did; calls of forward are marked where they would count as backward. A module that is a joint graph already gets the
// remark `joined`.
//
// Counters: bound (inputs of backward), phase-marks, graphs. Errors: kBadStep of find_step(); kUnsupportedGraph
// where the step is not one run of a forward and one of a backward graph, backward reads an input after the runtime gave
// it a new value, or an input of its own has the name of one of forward.
// O(nodes + edges).
Result<PassResult> join_pair(Module& module, const JoinOptions& options, PassContext& context);

}  // namespace fxopt
