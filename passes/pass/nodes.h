#pragma once

#include <utility>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// Whether `matches(input)` is true for at least one input of the node. O(arguments).
template <class Matches>
bool any_input(const Graph& graph, NodeId node, const Matches& matches) {
  bool found = false;
  graph.for_each_input(node, [&](NodeId input) { found = found || matches(input); });
  return found;
}

// Calls visit(user) for each use of the node, in arbitrary order. A user with several edges is
// visited several times. O(uses). Allocates no memory.
template <class Visit>
void for_each_user(const Graph& graph, NodeId node, const Visit& visit) {
  for (UseId use = graph.first_use(node); use.is_valid(); use = graph.use(use).next) visit(graph.use(use).user);
}

// Removes the last item of a list that is not empty, and returns the item. O(1).
template <class T>
T take_last(std::vector<T>& list) {
  T last = std::move(list.back());
  list.pop_back();
  return last;
}

}  // namespace fxopt
