#pragma once

#include <vector>

#include "ir/check/equivalence/claims.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns the claims that the passes from `before` to `after` would make. A pass makes a claim if
// it replaces an expression by another expression, and the prover needs a rewrite rule to prove
// them equal. The claim names a node, and the rewrite rule that makes the two expressions equal
// (claims.h). The prover checks each claim. Callers that have only the two files, such as `fxopt
// verify`, need this function.
//
// The function derives the claims from the origins of the nodes in `after`. An origin of a node
// names an old node and a pass. The pass made the node from the old node, or replaced the old node
// by the node. Only claims with a rule in `rules` are returned. If several passes changed the same
// calls one after the other, the claims may not suffice for a proof. O(nodes + origins).
std::vector<Claim> claims_by_origins(const Module& before, const Module& after, const std::vector<RewriteRule>& rules);

// Returns whether one of the rewrite rules `rules` may be the reason why `call` differs between two
// graphs. Use this function if no proof explains the difference. The result is true in three cases:
// - A pass that uses one of the rules made the call.
// - `rules` contains a rule other than kPart, and the call is a collective or a wait.
// - `rules` contains a rule other than kPart, and a path leads from the call to a collective or a
//   wait. The path has one of these two forms:
//
//     call -> its first argument -> its first argument -> ... -> collective or wait
//     call -> its first user -> its first user -> ... -> collective or wait
//
//   The call and all nodes between the call and the end of the path are views or data movements.
//   The path has at most eight views and data movements.
//
// O(origins + users of the calls on the path).
bool may_follow_from(const Graph& graph, NodeId call, const std::vector<RewriteRule>& rules);

}  // namespace fxopt
