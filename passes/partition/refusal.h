#pragma once

#include <string>
#include <utility>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// The node's name as in error messages: '%mm'.
inline std::string quoted(const Graph& graph, NodeId node) { return "'%" + std::string(graph.name_of(node)) + "'"; }

// kUnsupportedGraph for a graph that cannot be cut or joined, at that node; an invalid node means
// the whole graph, and the error names its output.
inline Error refused(const Graph& graph, NodeId node, std::string message, std::string hint) {
  Error error{ErrorCode::kUnsupportedGraph, std::move(message), std::move(hint), {}};
  error.where.graph = graph.module().text(graph.name());
  const NodeId place = node.is_valid() ? node : graph.output();
  if (!place.is_valid()) return error;
  error.where.node = graph.name_of(place);
  error.where.module_path = graph.module().text(graph[place].module_path);
  return error;
}

}  // namespace fxopt
