#pragma once

#include <vector>

#include "ir/check/equivalence/claims.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns the claims that the passes from `before` to `after` would make. The claims are derived
// from the origins of the nodes. This function is for callers that have only the two files. Only
// claims of `rules` are returned. A claim does not prove anything. The prover checks each claim. If
// several passes changed the same calls one after the other, claims of a single step may not
// suffice. O(nodes + origins).
std::vector<Claim> claims_by_origins(const Module& before, const Module& after, const std::vector<RewriteRule>& rules);

// Whether one of the rewrite rules may explain why the call differs, although the checker of that
// rule did not confirm this. This is true in three cases:
// - a pass of that rule made the call
// - the call is a collective or the wait for a collective, and `rules` contains a rule that is not
//   kPart
// - the call moves data on a path to or from a call of the second case
//
// O(steps of that path).
bool may_follow_from(const Graph& graph, NodeId call, const std::vector<RewriteRule>& rules);

}  // namespace fxopt
