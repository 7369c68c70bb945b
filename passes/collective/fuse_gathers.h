#pragma once

#include <cstdint>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/options.h"
#include "passes/pass/pass.h"

namespace fxopt {

enum class FuseGate : uint8_t {
  kCost,
  kNone,
};
template <>
struct EnumNames<FuseGate> {
  static constexpr EnumName<FuseGate> kAll[] = {{FuseGate::kCost, "cost"}, {FuseGate::kNone, "none"}};
};

struct FuseGathersOptions {
  FuseGate gate = FuseGate::kCost;
  bool create_groups = true;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field(
        "gate", self.gate,
        "cost: only where the device's links, or measured runs, do not say that one gather takes longer than those it "
        "stands for; none: wherever it is the same.");
    field(
        "create-groups", self.create_groups,
        "Add a process group where the file lists none with these ranks in this order, on meshes that it lists. Every "
        "rank must run the same pipeline, and make the group before the step.");
  }
};

// Makes one all-gather of several that follow each other, over the group of all their ranks.
//
//   %a = all_gather_into_tensor(%x, 16, "dp")
//   %v = wait_tensor(%a)                            %b = all_gather_into_tensor(%x, 128, "dp_tp")
//   %b = all_gather_into_tensor(%v, 8, "tp")   =>   %w = wait_tensor(%b)
//   %w = wait_tensor(%b)
//
// Order   The first gather's ranks are the fastest: dp before tp on a mesh [dp, tp] needs a group whose ranks run down the
//         columns, tp before dp one whose ranks run along the rows (ir/alias/rank_order.h). Groups are told by their
//         ordered ranks, never by name.
// Legal   What lies between shows all of the first result, in the order in which it lies: views composed by ATen's rules
//         (ir/alias/view_geometry.h) that end row by row. A reshape that copies ends a chain, and so does whatever else
//         reads the first result, its wait or the views, a write to what is gathered, another phase or tag, a control
//         dependency or an event on any of them.
// Place   Where the first gather is issued, if no call that may do anything and no other collective stands between, and no
//         device's ideal peak grows; else where the last is. All calls have one order either way, so that ranks with unlike
//         peaks agree. By cost all ranks of a mesh decide alike, whose groups lie otherwise on nodes: the slowest one
//         gather must not take longer than the fastest of those it stands for.
//
// Each chain is fused as far as groups and the gate allow, the longest run first. Counters: fused (gathers that went), groups
// (created). Remarks on every gather of what was gathered that stays; warnings: left-alone, groups-created, ranks-assumed (the
// order rests on ranks being numbered along a mesh that the file does not list), cost-unknown.
// O(nodes + edges + ranks of the gathers), and as often as the peak is measured: at most three times.
Result<PassResult> fuse_gathers(Graph& graph, const FuseGathersOptions& options, PassContext& context);

}  // namespace fxopt
