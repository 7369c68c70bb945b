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

// The name of an enumeration's value; "?7" of a number that this build does not know.
template <class E>
std::string enum_text(E value) {
  const std::string_view name = name_of(value);
  return name.empty() ? "?" + std::to_string(static_cast<unsigned>(value)) : std::string(name);
}

// The target of a call or a get_attr; empty for other nodes.
std::string_view target_text(const Graph& graph, NodeId node);

// What a value is, short: "bf16[2, s0]", "(f32[4], i64[])", "symbolic int", "None". Long tuples end in "...".
std::string value_text(const Graph& graph, const Value& value);

// "model.py:123" as the tracer recorded it; empty when it did not.
std::string source_text(const Graph& graph, NodeId node);

// True phases in a valid graph, as passes and `mem` see them; stored ones in a broken graph, where they cannot be told.
IdMap<NodeId, Phase> visible_phases(const Graph& graph, Validity validity);

}  // namespace fxopt
