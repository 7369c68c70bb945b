#pragma once

#include <vector>

#include "core/result.h"
#include "ir/step/tag_rules.h"
#include "passes/recompute/remat.h"

// The plan of remat, made on the unchanged graph.

namespace fxopt {

// The needs of one backward node: reloads to move before it, then copies to make, in forward order.
struct RematStep {
  NodeId consumer;
  std::vector<NodeId> hoisted;
  std::vector<NodeId> copies;
};

struct RematRegion {
  std::vector<NodeId> nodes;     // all of it, in schedule order
  std::vector<RematStep> steps;  // every node of the region that reads a copy
};

struct RematPlan {
  std::vector<RematRegion> regions;
  IdMap<NodeId, bool> recomputed;  // original -> some region copies it
  IdMap<NodeId, TagRule> blocked;  // recompute wanted, but prevented by this rule
  IdMap<NodeId, bool> excluded;    // backward nodes of excluded modules
  // Backward calls that read only the size of a value to be recomputed. They run in forward
  // instead.
  std::vector<NodeId> sizes;
  IdMap<NodeId, bool> is_size;
  std::vector<TagRemark> blocked_remarks;
};

struct RematFacts;

// Plans every backward region. Backward nodes of the modules in `exclude` cause no copies. Errors:
// kTagUnrepeatable, kUnsupportedGraph (compat=torch, several regions). O(nodes + edges + copies log
// copies).
Result<RematPlan> plan_remat(const Graph& graph, const RematFacts& facts, const RematOptions& options);

// The same plan, without errors: a value that cannot be repeated is blocked by the rule
// unrepeatable.
RematPlan forecast_remat(const Graph& graph, const RematFacts& facts, const RematOptions& options);

}  // namespace fxopt
