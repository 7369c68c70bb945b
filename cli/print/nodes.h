#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/summary/opaque.h"

namespace fxopt {

// Selected nodes of one graph, in schedule order.
struct Selection {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;
};

// The name of an enumeration's value; "?7" for a number unknown to this build.
template <class E>
std::string enum_text(E value) {
  const std::string_view name = name_of(value);
  return name.empty() ? "?" + std::to_string(static_cast<unsigned>(value)) : std::string(name);
}

// The target of a call or a get_attr; empty for other nodes.
std::string_view target_text(const Graph& graph, NodeId node);

// A short description of a value: "bf16[2, s0]", "(f32[4], i64[])", "symbolic int", "None". Long
// tuples end in "...".
std::string value_text(const Graph& graph, const Value& value);

// "model.py:123" as the tracer recorded it; empty if it did not.
std::string source_text(const Graph& graph, NodeId node);

// True phases in a valid graph, as passes and `mem` see them. Stored phases in a broken graph,
// where true ones cannot be derived.
IdMap<NodeId, Phase> visible_phases(const Graph& graph, Validity validity);

}  // namespace fxopt
