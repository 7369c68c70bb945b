#pragma once

#include <vector>

#include "ir/check/equivalence/claims.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns the claims that the passes from `before` to `after` would make. A claim names a rewrite
// rule that gives the value of a node, and the prover checks it (claims.h). The claims are derived
// from the origins of the nodes, which record the old node and the pass that a node comes from.
// Callers that have only the two files, such as `fxopt verify`, need this function. Only claims of
// `rules` are returned. If several passes changed the same calls one after the other, the claims
// may not suffice for a proof. O(nodes + origins).
std::vector<Claim> claims_by_origins(const Module& before, const Module& after, const std::vector<RewriteRule>& rules);

// Returns whether one of the rewrite rules `rules` may be the reason why `call` differs between two
// graphs. Use this function if no proof explains the difference. The result is true in three cases:
// - a pass that uses one of the rules made the call
// - the call is a collective or the wait for a collective, and `rules` contains a rule that is not
//   kPart
// - the call is a view or moves data, and a short path of such calls leads to or from a call of the
//   second case
//
// O(origins + users of the calls on the path).
bool may_follow_from(const Graph& graph, NodeId call, const std::vector<RewriteRule>& rules);

}  // namespace fxopt
