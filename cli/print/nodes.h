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

// Returns the name of an enumeration's value. If this build has no name for the number, returns
// text such as "?7".
template <class E>
std::string enum_text(E value) {
  const std::string_view name = name_of(value);
  return name.empty() ? "?" + std::to_string(static_cast<unsigned>(value)) : std::string(name);
}

// Returns the target of a call or a get_attr. Returns an empty text for other nodes.
std::string_view target_text(const Graph& graph, NodeId node);

// Returns a short description of a value: "bf16[2, s0]", "(f32[4], i64[])", "symbolic int", "None".
// Describes only the first four elements of a tuple, list or dict. For example, the description of
// a tuple with nine elements is:
//
//   (f32[4], f32[4], f32[4], f32[4], ... 9 in total)
std::string value_text(const Graph& graph, const Value& value);

// Returns the source line of a node: "model.py:123". If the recorded line is in PyTorch, returns
// the innermost line outside PyTorch from the recorded stack trace. Returns an empty text if no
// line is recorded.
std::string source_text(const Graph& graph, NodeId node);

// Returns true if the line in Node::source is outside PyTorch. If true, source_text() returns this
// line, so it returns the same text for all nodes with this Node::source. If false, source_text()
// may use the stack trace of the node, and nodes with this Node::source may have different texts.
bool has_own_frame(const Graph& graph, NodeId node);

// Returns the phases to show. For a valid graph, returns the result of resolve_phases(). The passes
// and the command `mem` use the same phases. The phases of a broken graph cannot be derived, so the
// stored phases are returned.
IdMap<NodeId, Phase> visible_phases(const Graph& graph, Validity validity);

}  // namespace fxopt
