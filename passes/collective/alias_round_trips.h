#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct AliasRoundTripsOptions {
  bool drop_gathers = true;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("drop-gathers", self.drop_gathers,
          "Gathers, with their waits, that nobody reads any more go (every rank must run the same pipeline).");
  }
};

// Lets what a rank cuts for itself out of what it gathered be what it gave.
//
//   %a = all_gather_into_tensor(%x, 8, "tp")
//   %w = wait_tensor(%a)
//   %s = slice(alias(%w), 0, 4 * r, 4 * r + 4)    =>   %y = mul(%x, 2)
//   %y = mul(%s, 2)
//
// Cut     By any views, and elements of splits, that ATen's rules compose to the rank's own part as a whole, row by row
//         (ir/alias/view_geometry.h): as the place among the group's ranks of the rank that the file is of, or as a symbol
//         of the kind rank (ir/alias/rank_order.h). It may have other sizes than what was given; then it becomes a view.
// Legal   Nobody writes to what was given or gathered, from the gather to the last that reads the cut; the caller is not
//         handed the cut, which would be another tensor's memory; nothing holds it.
//
// Other readers keep the gather. Counters: round-trips, dropped (gathers). Remarks on each cut that stays; warnings:
// left-alone, rank-unknown (nothing tells which part is a rank's own). O(nodes + edges + ranks of the gathers).
Result<PassResult> alias_round_trips(Graph& graph, const AliasRoundTripsOptions& options, PassContext& context);

}  // namespace fxopt
