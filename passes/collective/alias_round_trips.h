#pragma once

#include <cstdint>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

enum class DropGathers : uint8_t {
  kShown,
  kAlways,
  kNever,
};
template <>
struct EnumNames<DropGathers> {
  static constexpr EnumName<DropGathers> kAll[] = {
      {DropGathers::kShown, "shown"}, {DropGathers::kAlways, "always"}, {DropGathers::kNever, "never"}};
};

struct AliasRoundTripsOptions {
  DropGathers drop_gathers = DropGathers::kShown;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("drop-gathers", self.drop_gathers,
          "Gathers that nobody reads any more: shown: go where a symbol of the rank shows that no rank reads them; "
          "always: "
          "go, and fxopt ranks must say of all results that every rank drops them; never: stay.");
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
//         Or out of a cat that puts all parts of the gather side by side along another dimension, as DTensor does for any but
//         the first: then the cut does not lie row by row, and only its clones are let read what was given.
// Legal   Nobody writes to what was given or gathered, from the gather to the last that reads the cut; the caller is not
//         handed the cut, which would be another tensor's memory; nothing holds it.
//
// Other readers keep the gather. Where nobody reads it any more, it may go only where every rank drops it. One rank's file does
// not show that: a part that is the third rank's on all of them is the third rank's own, and that rank alone would not gather.
//
// Counters: round-trips, dropped (gathers). Remarks on each cut that stays. Warnings: left-alone; by-number (parts that one
// rank's file shows to be its own, which need not be so on the others); rank-unknown (nothing tells which part is a rank's own);
// unread (gathers that nobody reads and that stay). O(nodes + edges + ranks of the gathers).
Result<PassResult> alias_round_trips(Graph& graph, const AliasRoundTripsOptions& options, PassContext& context);

}  // namespace fxopt
