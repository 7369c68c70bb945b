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
          "Give each recomputed copy of a higher-order call its own copies of the get_attr nodes that fetch the call's "
          "subgraphs. Compilers that compile parts of the graph separately may need this.");
    field("compat", self.compat,
          "Rules that decide which values are recomputed. fxopt: the rules of fxopt; torch: the rules of PyTorch 2.15 "
          "(remat_using_tags_for_fwd_loss_bwd_graph). The warning `not-exact` names each value that PyTorch recomputes "
          "although the result may differ.");
  }
};

// Carries out recompute tags in a graph of forward, loss and backward. If backward needs a value
// that is tagged for recompute, backward recomputes the value. The copy of the node is placed
// directly before the first consumer of the copy. Copies do not get the save mark (`ap_must_save`)
// of the original. The original in forward is erased if it loses its last user.
//
// Counters:
// - recomputed: copies that were made
// - redirected: edges that now read a copy
// - erased: forward nodes that lost their last user
// - hoisted: nodes that moved to an earlier place. Three kinds of nodes move:
//   - a reload of a value that CPU offload moved off the device (reloads.h)
//   - the wait for such a reload
//   - a backward call that reads only the size of a value to be recomputed
// - into-forward: backward calls that moved to forward, because they read only the size of a value
//   to be recomputed
// - own-subgraphs: get_attr nodes that were added by the option `own-subgraphs`
// - phase-marks: inferred phases that were written. They are written only if the graph has no phase
//   markers and copies are made.
// - verdicts: new verdicts on tags, and new or changed verdicts on save marks (verdicts.h)
//
// Notes: regions (backward regions that needed copies). Remarks: kNoBackward (recompute tags in a
// graph without any backward node).
//
// Errors: kTagUnrepeatable if backward needs a value that must be recomputed but cannot be
// recomputed. With compat=torch, kUnsupportedGraph in two cases, which PyTorch refuses as well:
// - A tag requests the recompute of a random op, even if backward does not need the value.
// - Copies are needed in more than one backward region. A backward region is a run of consecutive
//   backward nodes.
//
// O(nodes + edges + copies log copies).
Result<PassResult> remat(Graph& graph, const RematOptions& options, PassContext& context);

// Like remat() with default options, but carries out `decisions`. The pass with the name `pass`
// made the decisions. That pass may use not only tags, but also save marks or a minimal cut.
Result<PassResult> remat_as_decided(Graph& graph, TagDecisions decisions, PassContext& context, std::string_view pass);

}  // namespace fxopt
