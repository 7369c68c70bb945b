#pragma once

#include "core/hash_table.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The graphs that calls of one graph run: given as arguments, or held by attributes. Valid until
// attributes change.
//
// Built in O(attributes).
class SubgraphNames {
 public:
  explicit SubgraphNames(const Graph& graph);

  // Calls visit(name) for each graph that the call's arguments name, in order. O(arguments).
  template <class Visit>
  void for_each(const Graph& graph, NodeId node, Visit visit) const {
    visit_args(graph, graph[node].args, visit);
    visit_args(graph, graph[node].kwargs, visit);
  }

  // The graph held by the attribute that a node reads; invalid if it holds none. O(1) expected.
  StringId held_by(const Graph& graph, NodeId node) const;

 private:
  template <class Visit>
  void visit_args(const Graph& graph, ArgRange range, Visit& visit) const {
    for (const Arg& arg : graph.pool().args(range)) {
      if (arg.is(ArgKind::kGraph)) {
        visit(arg.as_string());
      } else if (arg.is(ArgKind::kNode)) {
        if (const StringId name = held_by(graph, arg.as_node()); name.is_valid()) visit(name);
      } else if (arg.has_children()) {
        visit_args(graph, arg.range(), visit);  // depth is bounded by every reader
      }
    }
  }

  HashMap<StringId, StringId> attributes_;  // path to the name of a graph
};

}  // namespace fxopt
