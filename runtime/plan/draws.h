#pragma once

#include "ir/graph/module.h"
#include "ir/step/compose.h"
#include "ir/step/step.h"
#include "runtime/plan/lower.h"

namespace fxopt {

// The uid that a random call had when it was first recorded: that of the call which it computes again, where it is such
// a copy, else its own. O(origins).
uint64_t first_uid(const Graph& graph, NodeId node);

// Which run of its graph each run of a step is: its microbatch where the file says so, else how many runs of graphs of
// this kind stand before it. O(runs).
std::vector<uint32_t> invocations_of(const Module& module, const Step& step);

// The draw keys of a step that compose_step() made one graph of. `composed`: that graph. O(nodes).
DrawKeys draw_keys(const Module& module, const Step& step, const Graph& composed);

}  // namespace fxopt
