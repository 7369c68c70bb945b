#pragma once

#include <ostream>

#include <nlohmann/json_fwd.hpp>

#include "ir/alias/dependence.h"

// The nodes that each node must follow, and how far it may move, as text and as JSON.

namespace fxopt {

// "follows %a (value), %b (storage)" and "may move up to right after %b, down to right before %c".
void print_dependences(std::ostream& out, const Graph& graph, const DependenceMap& dependences, NodeId node);
nlohmann::ordered_json dependences_json(const Graph& graph, const DependenceMap& dependences, NodeId node);

}  // namespace fxopt
