#pragma once

#include <string>
#include <utility>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns the node's name as error messages write it: '%mm'.
inline std::string quoted(const Graph& graph, NodeId node) { return "'%" + std::string(graph.name_of(node)) + "'"; }

// Returns an error at `node`, for a graph that a pass must refuse. If `node` is invalid, the error
// concerns the whole graph and refers to the output of the graph.
inline Error refused(const Graph& graph, NodeId node, std::string message, std::string hint,
                     ErrorCode code = ErrorCode::kUnsupportedGraph) {
  Error error{code, std::move(message), std::move(hint), {}};
  error.where.graph = graph.module().text(graph.name());
  const NodeId place = node.is_valid() ? node : graph.output();
  if (!place.is_valid()) return error;
  error.where.node = graph.name_of(place);
  error.where.module_path = graph.module().text(graph[place].module_path);
  return error;
}

}  // namespace fxopt
