#pragma once

#include "ir/graph/module.h"
#include "ir/step/compose.h"
#include "ir/step/step.h"
#include "runtime/plan/lower.h"

namespace fxopt {

// Returns the uid that a random call had when it was first recorded. For a recomputed copy, this is
// the uid of the original. For any other call, it is the uid of the call. O(origins).
uint64_t first_uid(const Graph& graph, NodeId node);

// Returns the invocation number of each run of a step. If the file records the microbatch of the
// run, the number is the microbatch. Otherwise, the number counts the earlier runs of graphs of the
// same kind. O(runs).
std::vector<uint32_t> invocations_of(const Module& module, const Step& step);

// Returns the draw keys of a step that compose_step() merged into the graph `composed`. O(nodes).
DrawKeys draw_keys(const Module& module, const Step& step, const Graph& composed);

}  // namespace fxopt
