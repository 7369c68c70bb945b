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
          "How to treat a gather whose result is no longer used. shown: erase the gather if its slice was indexed by a "
          "symbol for the rank, because every rank then erases the gather; always: erase the gather (check with `fxopt "
          "ranks` that every rank erases it); never: keep the gather.");
  }
};

// Replaces a slice of a gathered tensor by the rank's own shard.
//
//   %a = all_gather_into_tensor(%x, 8, "tp")
//   %w = wait_tensor(%a)
//   %s = slice(alias(%w), 0, 4 * r, 4 * r + 4)    =>   %y = mul(%x, 2)
//   %y = mul(%s, 2)
//
// Slice   The slice is a chain of views and elements of splits. By ATen's view rules, its result is
//         exactly the rank's own shard, in row-major order (ir/alias/view_geometry.h). The index of
//         the shard is the position of the file's rank in the group, or a symbol of the kind rank
//         (ir/alias/rank_order.h). If the slice and the shard differ in sizes, the slice becomes a
//         view of the shard. To gather along a dimension that is not the first, DTensor
//         concatenates all shards along this dimension. A slice of the concatenation is not
//         row-major. In that case, only clones of the slice may read the shard instead of the
//         slice.
// Legal   The slice is replaced only if these conditions hold:
//         - From the gather to the last consumer of the slice, no node writes to the gather's input
//           or result.
//         - The graph does not return the slice. Otherwise the caller would get the memory of
//           another tensor.
//         - The slice has no control dependency and no event.
//
// If the gathered tensor has other consumers, the gather stays. A gather without consumers may be
// erased only if every rank erases this gather. The file of one rank does not show whether the
// other ranks do so. For example, if every rank reads the third shard, only the third rank reads
// its own shard and would drop the gather.
//
// Counters: round-trips, dropped (gathers). Each unchanged slice gets a remark with the reason.
// Graph remarks: left-out, unread (gathers without consumers that are kept).
//
// Warnings:
// - may-differentiate: autograd may differentiate the graph, so nothing is changed
// - constant-index: a constant index selects the slice. The slice is this rank's own shard, but on
//   another rank the same index may select a shard of a different rank.
// - rank-unknown: no slice is known to be the rank's own shard
//
// Complexity: O(nodes + edges + ranks of the gathers).
Result<PassResult> alias_round_trips(Graph& graph, const AliasRoundTripsOptions& options, PassContext& context);

}  // namespace fxopt
