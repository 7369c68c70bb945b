#pragma once

#include "core/hash_table.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The graphs that are run by the calls in one graph. A call refers to such a graph by an argument,
// or by an attribute that holds the graph. Valid until attributes change.
class SubgraphNames {
 public:
  explicit SubgraphNames(const Graph& graph);

  // Calls visit(name) for each graph that the call's arguments name, in order. O(arguments).
  template <class Visit>
  void for_each(const Graph& graph, NodeId node, Visit visit) const {
    visit_args(graph, graph[node].args, visit);
    visit_args(graph, graph[node].kwargs, visit);
  }

  // Returns the name of the graph that the attribute of a get_attr node holds. Returns an invalid
  // id if the attribute holds no graph, or if `node` is not a get_attr node. O(1) expected.
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
        visit_args(graph, arg.range(), visit);  // recursion is safe: file readers limit the nesting
      }
    }
  }

  HashMap<StringId, StringId> attributes_;  // graph names by attribute path
};

}  // namespace fxopt
