#pragma once

#include <vector>

#include "core/result.h"
#include "ir/step/tag_rules.h"
#include "passes/recompute/remat.h"

// The plan of the pass `remat`, made on the unchanged graph.

namespace fxopt {

// The changes for one backward node: the reloads to move before it, and then the copies to make, in
// the order of forward.
struct RematStep {
  NodeId consumer;
  std::vector<NodeId> hoisted;
  std::vector<NodeId> copies;
};

struct RematRegion {
  std::vector<NodeId> nodes;     // in schedule order; excludes the nodes in RematPlan::sizes
  std::vector<RematStep> steps;  // one step for each node in `nodes` that reads a copy
};

struct RematPlan {
  std::vector<RematRegion> regions;
  IdMap<NodeId, bool> recomputed;  // whether some region has a copy of the node
  IdMap<NodeId, TagRule> blocked;  // the rule that prevents a requested recompute
  IdMap<NodeId, bool> excluded;    // whether the node is backward and in an excluded module
  // Backward calls that read only the size of a value to be recomputed. They run in forward
  // instead.
  std::vector<NodeId> sizes;
  IdMap<NodeId, bool> is_size;
  std::vector<TagRemark> blocked_remarks;
};

struct RematFacts;

// Plans every backward region. Backward nodes of the modules in `exclude` read no copies. Errors:
// kTagUnrepeatable, and kUnsupportedGraph (compat=torch, several regions). O(nodes + edges + copies
// log copies).
Result<RematPlan> plan_remat(const Graph& graph, const RematFacts& facts, const RematOptions& options);

// Makes the same plan as plan_remat(), but never fails. A value that cannot be repeated is blocked
// by the rule `unrepeatable`.
RematPlan forecast_remat(const Graph& graph, const RematFacts& facts, const RematOptions& options);

}  // namespace fxopt
