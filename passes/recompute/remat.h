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
    field(
        "exclude", self.exclude,
        "Top-level modules, comma-separated, whose backward reads saved forward values instead of recomputed copies.");
    field("own-subgraphs", self.own_subgraphs,
          "Give each copy of a higher-order call its own get_attr nodes, as compilers of single regions need.");
    field("compat", self.compat,
          "Whose decisions to use. fxopt: the decisions of fxopt; torch: the decisions of PyTorch 2.15 "
          "(remat_using_tags_for_fwd_loss_bwd_graph). The warning `not-exact` marks each value for which the decision "
          "of PyTorch is not exact.");
  }
};

// Carries out recompute tags in a graph of forward, loss and backward. A value that backward needs
// and that is tagged for recompute is recomputed. The copy is placed directly before the first
// consumer of the copy in backward. The original in forward is erased if no node uses the original.
//
// Counters:
// - recomputed: copies that were made
// - redirected: edges that now read a copy
// - erased: forward nodes that lost their last user
// - hoisted: moved size queries, and reloads and waits of offloaded values that moved before a copy
//   that reads them
// - into-forward: backward calls that moved to forward, because they read only the size of a value
//   to be recomputed
// - own-subgraphs
// - phase-marks: inferred phases that were written, if the graph marks none and copies are made
// - verdicts: every tagged node gets a verdict (verdicts.h)
//
// Notes: regions (backward regions that needed copies). Remarks: kNoBackward (recompute tags in a
// graph without any backward node).
//
// Errors: kTagUnrepeatable if backward needs a value that must be recomputed but cannot be
// recomputed. With compat=torch, kUnsupportedGraph if PyTorch refuses the graph: PyTorch refuses
// random ops in recompute regions, and several regions that need copies. O(nodes + edges + copies
// log copies).
Result<PassResult> remat(Graph& graph, const RematOptions& options, PassContext& context);

// Like remat(), but for the pass `pass`. This pass chose the forward values without tags, for
// example by a minimal cut. Copies carry no mark.
Result<PassResult> remat_as_decided(Graph& graph, TagDecisions decisions, PassContext& context, std::string_view pass);

}  // namespace fxopt
