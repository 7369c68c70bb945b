#pragma once

#include "ir/graph/module.h"
#include "ir/step/compose.h"
#include "ir/step/step.h"
#include "runtime/plan/lower.h"

namespace fxopt {

// Returns the uid that identifies a random call. For a recomputed copy, this is the uid of the
// original call. For any other call, this is the call's own uid. O(recorded origins of the node).
uint64_t first_uid(const Graph& graph, NodeId node);

// Returns the invocation number (FxDraw::invocation) of each run of a graph in a training step. If
// the file records the microbatch of the run, the number is the microbatch. Otherwise, the number
// counts the earlier runs of graphs of the same kind, such as forward graphs. O(runs).
std::vector<uint32_t> invocations_of(const Module& module, const Step& step);

// Returns the draw keys of the random calls in `composed`, which is the graph that compose_step()
// made from the training step `step`. O(nodes).
DrawKeys draw_keys(const Module& module, const Step& step, const Graph& composed);

}  // namespace fxopt
