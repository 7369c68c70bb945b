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
    field(
        "drop-gathers", self.drop_gathers,
        "How to treat a gather whose result is no longer used. shown: erase the gather if the index of the "
        "replaced slice contains a symbol for the rank. Every rank then has this graph, and erases the gather; always: "
        "erase the gather, even if other ranks may keep it (check with `fxopt ranks`); never: keep the gather.");
  }
};

// Replaces a slice of a gathered tensor by the rank's own shard.
//
//   %a = all_gather_into_tensor(%x, 8, "tp")
//   %w = wait_tensor(%a)
//   %s = slice(alias(%w), 0, 4 * r, 4 * r + 4)    =>   %y = mul(%x, 2)
//   %y = mul(%s, 2)
//
// Slice:  A chain of calls leads from the gathered tensor to the slice. Each call is a view, or
//         takes one element of a list of views, such as the result of a split. By ATen's view
//         rules, the slice shows exactly the rank's own shard, in row-major order
//         (ir/alias/view_geometry.h). The index of the shard is the position of the file's rank in
//         the group, or a symbol of the kind rank (ir/alias/rank_order.h). If the slice and the
//         shard differ in sizes, a view of the shard replaces the slice.
// Concat: To gather along a dimension that is not the first, DTensor concatenates all shards along
//         this dimension. A slice of the concatenation is not row-major. The pass replaces this
//         slice only if all users of the slice are clones with row-major results. The shard is
//         row-major too, so a clone of the shard has the same result.
// Legal:  The slice is replaced only if these conditions hold:
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
// Counters: round-trips, dropped (gathers).
//
// Remarks: Each unchanged slice gets a remark with the reason. Two more remarks are written at most
// once for each graph:
// - left-out: the number of unchanged slices
// - unread: the number of gathers that are kept although they have no consumers
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
