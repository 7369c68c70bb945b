#pragma once

#include <vector>

#include "ir/check/equivalence/claims.h"
#include "ir/graph/module.h"

namespace fxopt {

// What the passes that made `after` of `before` would claim, told from the origins of its nodes: for whoever has the two files
// alone. Only claims of `laws`. They prove nothing: the prover looks at each. Where several passes changed the same calls one
// after the other, no claims of one step may bear all of that out. O(nodes + origins).
std::vector<Claim> claims_by_origins(const Module& before, const Module& after, const std::vector<Law>& laws);

// Whether one of the laws may be what makes the call differ, though its checker did not bear it out: a pass that works by the law made
// the call, or it is a collective of the law's kind, a wait for one, or moves data on the way to or from one. O(steps of that way).
bool may_follow_from(const Graph& graph, NodeId call, const std::vector<Law>& laws);

}  // namespace fxopt
