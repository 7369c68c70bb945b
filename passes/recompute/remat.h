#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ir/step/tag_rules.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct RematOptions {
  std::vector<std::string> exclude;
  bool own_subgraphs = false;
  Compat compat = Compat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("exclude", self.exclude,
          "Top-level modules, comma-separated, whose backward gets no copies and reads what forward made.");
    field("own-subgraphs", self.own_subgraphs,
          "Give a copy of a higher-order call get_attr nodes of its own, as compilers of single regions need.");
    field(
        "compat", self.compat,
        "Whose decisions: fxopt, or torch (remat_using_tags_for_fwd_loss_bwd_graph of 2.15), which is not exact where "
        "a warning not-exact says so.");
  }
};

// Carries out recompute tags in a forward-loss-backward graph: what backward needs and the tags let go is computed
// again right before its first reader in backward, and the forward copy dies.
//
// Counters: recomputed (copies made), redirected (edges that now read a copy), erased (forward nodes left without
// users), hoisted (reloads and waits of offloaded values, moved before a copy that reads them; sizes), into-forward (calls of
// backward that ask what would be computed again for its size alone), own-subgraphs. Notes:
// regions (backward regions that needed copies). Every tagged node gets a verdict (verdicts.h). Phases are derived
// where the graph marks none; with copies they are written into it (counter phase-marks). Recompute tags in a graph
// without any backward node are a remark, kNoBackward.
//
// Errors: kTagUnrepeatable when backward needs a value that must be recomputed and cannot be; with
// compat=torch, kUnsupportedGraph where PyTorch refuses (random ops in recompute regions, several regions that need
// copies). O(nodes + edges + copies log copies).
Result<PassResult> remat(Graph& graph, const RematOptions& options, PassContext& context);

// The same for `pass`, by what that has decided about forward values, such as a minimal cut. Copies carry no mark.
Result<PassResult> remat_as_decided(Graph& graph, TagDecisions decisions, PassContext& context, std::string_view pass);

}  // namespace fxopt
