#pragma once

#include <cstddef>

#include "ir/graph/graph.h"

// What the arguments of one call say about it. Its effects as a whole: EffectMap.

namespace fxopt {

// The argument at `position` of the op's schema as this call gives it: by place, by keyword, or nullptr where the
// default holds. Without a schema only places count. O(keyword arguments).
const Arg* call_argument(const Graph& graph, NodeId node, size_t position);

// True when this call draws random numbers: a random op, unless it is a dropout-like one whose probability is
// statically 0 (fused attention is seeded whatever its dropout_p).
bool is_random_call(const Graph& graph, NodeId node);

// True when the writes of Op::writes happen: batch norm updates its running statistics only in training.
bool is_writing_call(const Graph& graph, NodeId node);

}  // namespace fxopt
