#pragma once

#include "ir/graph/module.h"
#include "ir/step/compose.h"
#include "ir/step/step.h"
#include "runtime/plan/lower.h"

namespace fxopt {

// Returns the uid of a random call when it was first recorded: for a recomputed copy the uid of its
// original, else its own. O(origins).
uint64_t first_uid(const Graph& graph, NodeId node);

// Returns the invocation number of each run of a step: its microbatch if the file records it, else
// the number of earlier runs of graphs of this kind. O(runs).
std::vector<uint32_t> invocations_of(const Module& module, const Step& step);

// Returns the draw keys of a step that compose_step() merged into the graph `composed`. O(nodes).
DrawKeys draw_keys(const Module& module, const Step& step, const Graph& composed);

}  // namespace fxopt
