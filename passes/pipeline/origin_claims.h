#pragma once

#include <vector>

#include "ir/check/equivalence/claims.h"
#include "ir/graph/module.h"

namespace fxopt {

// The claims that the passes which made `after` from `before` would make, derived from the origins
// of its nodes, for callers that have only the two files. Contains only claims of `laws`. They
// prove nothing by themselves: the prover checks each. If several passes changed the same calls in
// turn, claims of a single step may not suffice. O(nodes + origins).
std::vector<Claim> claims_by_origins(const Module& before, const Module& after, const std::vector<RewriteRule>& laws);

// Whether one of the rewrite rules may explain why the call differs, although its checker did not
// confirm it: a pass of that rule made the call, or the call is a collective of the rule's kind, a
// wait for one, or moves data on the way to or from one. O(steps of that way).
bool may_follow_from(const Graph& graph, NodeId call, const std::vector<RewriteRule>& laws);

}  // namespace fxopt
