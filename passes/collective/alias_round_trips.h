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
          "Gathers left without consumers. shown: erased if a rank symbol shows that every rank drops them; always: "
          "erased, and fxopt ranks must confirm on all results that every rank drops them; never: kept.");
  }
};

// Replaces a slice of a gathered tensor by the rank's own shard.
//
//   %a = all_gather_into_tensor(%x, 8, "tp")
//   %w = wait_tensor(%a)
//   %s = slice(alias(%w), 0, 4 * r, 4 * r + 4)    =>   %y = mul(%x, 2)
//   %y = mul(%s, 2)
//
// Slice   Any chain of views and split elements that ATen's rules compose to exactly the rank's own
//         shard, row-major (ir/alias/view_geometry.h). The shard's index is the place of the file's
//         rank in the group, or a symbol of the kind rank (ir/alias/rank_order.h). If the slice has
//         other sizes than the shard, it becomes a view of the shard.
//         DTensor gathers along any dimension but the first by a cat of all shards along it. A
//         slice of that cat is not row-major, so only clones of it may read the shard instead.
// Legal   No node writes to the gather's input or result from the gather to the last consumer of
//         the slice. The graph does not return the slice, which would be another tensor's memory.
//         No control dependency or event holds the slice.
//
// Other consumers keep the gather. A gather without consumers may be erased only if every rank
// erases it, which one rank's file does not show. If every rank reads the third shard, it is the
// third rank's own, and only that rank would drop the gather.
//
// Counters: round-trips, dropped (gathers). A remark on each slice that is unchanged gives the
// reason. Graph remarks: left-out; unread (gathers without consumers that are kept). Warnings:
// may-differentiate; constant-index (slices that one rank's file shows to be its own shard, which
// other ranks need not share); rank-unknown (no slice is known to be the rank's own shard). O(nodes
// + edges + ranks of the gathers).
Result<PassResult> alias_round_trips(Graph& graph, const AliasRoundTripsOptions& options, PassContext& context);

}  // namespace fxopt
