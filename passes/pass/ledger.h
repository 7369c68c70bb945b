#pragma once

#include <string_view>

#include "ir/graph/graph.h"

namespace fxopt {

// Enters a tagged node that `pass` is about to erase into the module's ledger, with its verdict so far, so that every
// tag ends a pipeline with one. Does nothing for an untagged node. O(1) amortised.
void record_erased(Graph& graph, NodeId node, std::string_view pass);

// Erases a node that nobody reads. A tag on it without a verdict is moot: backward reads nothing of it. O(arguments).
void erase_unread(Graph& graph, NodeId node, std::string_view pass);

}  // namespace fxopt
