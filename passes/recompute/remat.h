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
          "Top-level modules, comma-separated, whose backward reads forward's values instead of recomputed copies.");
    field("own-subgraphs", self.own_subgraphs,
          "Give each copy of a higher-order call its own get_attr nodes, as compilers of single regions need.");
    field("compat", self.compat,
          "Whose decisions to make: fxopt's, or torch's (remat_using_tags_for_fwd_loss_bwd_graph of 2.15). A warning "
          "`not-exact` names each value for which torch's are not exact.");
  }
};

// Carries out recompute tags in a forward-loss-backward graph. A value that backward needs and that
// is tagged for recompute is recomputed directly before its first consumer in backward. The forward
// original is erased if nothing else uses it.
//
// Counters: recomputed (copies made), redirected (edges that now read a copy), erased (forward
// nodes left without users), hoisted (reloads and waits of offloaded values, moved before a copy
// that reads them; moved size queries), into-forward (backward calls that read only the size of a
// value to be recomputed), own-subgraphs. Notes: regions (backward regions that needed copies).
// Every tagged node gets a verdict (verdicts.h). Phases are inferred if the graph marks none, and
// are written if copies are made (counter phase-marks). Recompute tags in a graph without any
// backward node are a remark, kNoBackward.
//
// Errors: kTagUnrepeatable if backward needs a value that must be recomputed but cannot be. With
// compat=torch, kUnsupportedGraph if PyTorch refuses the graph (random ops in recompute regions,
// several regions that need copies). O(nodes + edges + copies log copies).
Result<PassResult> remat(Graph& graph, const RematOptions& options, PassContext& context);

// Like remat(), for `pass`, which decided about forward values in another way than by tags, such as
// by a minimal cut. Copies carry no mark.
Result<PassResult> remat_as_decided(Graph& graph, TagDecisions decisions, PassContext& context, std::string_view pass);

}  // namespace fxopt
