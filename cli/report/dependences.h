#pragma once

#include <ostream>

#include <nlohmann/json_fwd.hpp>

#include "ir/alias/dependence.h"

// Reports the nodes that each node must follow, and how far each node may move. The reports are
// text and JSON.

namespace fxopt {

// Prints lines such as "follows %a (value), %b (storage)" and "may move up to right after %b, down
// to right before %c".
void print_dependences(std::ostream& out, const Graph& graph, const DependenceMap& dependences, NodeId node);
nlohmann::ordered_json dependences_json(const Graph& graph, const DependenceMap& dependences, NodeId node);

}  // namespace fxopt
