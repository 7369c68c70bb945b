#pragma once

#include <string_view>

#include "ir/graph/graph.h"

namespace fxopt {

// Makes `kept` stand for `gone`, which is about to be erased: uses of `gone` read `kept`, `kept` records the origin and
// the origins `gone` had (of recomputed copies none: what one was copied from says nothing about the other), the ledger
// gets a tagged `gone`. Control dependencies on `gone` are moved by retarget_control(), once for many merges.
// O(uses of `gone` + origins).
void merge_into(Graph& graph, NodeId gone, NodeId kept, std::string_view pass);

// Control dependencies on a node with a valid entry in `replaced` become dependencies on that entry, repeatedly.
// O(nodes).
void retarget_control(Graph& graph, const IdMap<NodeId, NodeId>& replaced);

}  // namespace fxopt
