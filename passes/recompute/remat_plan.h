#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ir/analysis/phases.h"
#include "ir/analysis/storages.h"
#include "ir/analysis/tag_rules.h"
#include "passes/pipeline/pass.h"
#include "passes/recompute/reloads.h"

// What remat will do, decided on the unchanged graph.

namespace fxopt {

// What one backward node needs: reloads to move before it, then copies to make, in forward order.
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
  IdMap<NodeId, bool> blocked;     // recompute wanted, rule 5 forbade it
  IdMap<NodeId, bool> excluded;    // backward nodes of excluded modules
  std::vector<TagRemark> blocked_remarks;
};

// Plans every backward region; backward nodes of the modules `exclude` lists ask for nothing. Errors: kTagUnrepeatable,
// kUnsupportedGraph (compat=torch, several regions). O(nodes + edges + copies log copies).
Result<RematPlan> plan_remat(const Graph& graph, const PhaseMap& phases, const StorageMap& storages,
                             const TagDecisions& decisions, const Reloads& reloads, std::string_view exclude,
                             Compat compat);

}  // namespace fxopt
