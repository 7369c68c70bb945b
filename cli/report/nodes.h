#pragma once

#include <string>

#include "ir/graph/graph.h"

namespace fxopt {

// What a value is, short: "bf16[2, s0]", "(f32[4], i64[])", "symbolic int", "None". Long tuples end in "...".
std::string value_text(const Graph& graph, const Value& value);

// "model.py:123" as the tracer recorded it; empty when it did not.
std::string source_text(const Graph& graph, NodeId node);

}  // namespace fxopt
