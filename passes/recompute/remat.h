#pragma once

#include "core/result.h"
#include "passes/pipeline/pass.h"

namespace fxopt {

struct RematOptions {
  Compat compat = Compat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("compat", self.compat, "Whose decisions: fxopt, or torch (remat_using_tags_for_fwd_loss_bwd_graph of 2.15).");
  }
};

// Carries out recompute tags in a forward-loss-backward graph: what backward needs and the tags let go is computed
// again right before its first reader in backward, and the forward copy dies.
//
// Counters: recomputed (copies made), redirected (edges that now read a copy), erased (forward nodes left without
// users). Notes: regions (backward regions that needed copies). Every tagged node gets a verdict.
//
// Errors: kTagUnrepeatable when backward needs a value that must be recomputed and cannot be (rule 3); with
// compat=torch, kUnsupportedGraph where PyTorch refuses (random ops in recompute regions, several regions that need
// copies). O(nodes + edges + copies log copies).
Result<PassResult> remat(Graph& graph, const RematOptions& options);

}  // namespace fxopt
