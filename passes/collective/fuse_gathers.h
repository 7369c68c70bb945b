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
    field("gate", self.gate,
          "cost: fuse unless the device's links, or measured runs, show that the one gather takes longer than the "
          "gathers it replaces; none: fuse wherever the result is the same.");
    field("create-groups", self.create_groups,
          "Add a process group if the file lists none with these ranks in this order, on meshes that the file lists. "
          "Every rank must run the same pipeline, and create the group before the step.");
  }
};

// Fuses nested all-gathers into one, over the group of all their ranks.
//
//   %a = all_gather_into_tensor(%x, 16, "dp")
//   %v = wait_tensor(%a)                            %b = all_gather_into_tensor(%x, 128, "dp_tp")
//   %b = all_gather_into_tensor(%v, 8, "tp")   =>   %w = wait_tensor(%b)
//   %w = wait_tensor(%b)
//
// Order   The first gather's ranks vary fastest. On a mesh [dp, tp], dp before tp needs a group
//         whose ranks run down the columns, tp before dp one whose ranks run along the rows
//         (ir/alias/rank_order.h). Groups are identified by their ordered ranks, never by name.
// Legal   The views between two gathers show the whole first result in its own order: ATen's rules
//         compose them to a row-major tensor (ir/alias/view_geometry.h). A chain ends at a reshape
//         that copies; at any other consumer of the first result, its wait or the views; at a write
//         to the gather's input; at another phase or tag; and at a control dependency or an event
//         on any of these nodes.
// Place   At the first gather, if no call with unknown effects and no other collective is between,
//         and no device's ideal peak grows; else at the last gather. The order of all calls is the
//         same either way, so ranks with unlike peaks agree.
// Cost    All ranks of a mesh decide alike, though their groups may be spread over nodes in
//         different ways. The slowest fused gather on the mesh must not take longer than the
//         fastest of the gathers it replaces, summed over the chain.
//
// Each chain is fused as far as groups and the gate allow, longest run first.
//
// Counters: fused (gathers that were erased), groups (created). A remark on every nested gather
// that is not fused gives the reason. Graph remark: left-out. Warnings: may-differentiate,
// groups-created, ranks-assumed (the order is right only if ranks are numbered along a mesh that
// the file does not list), cost-unknown. O(nodes + edges + ranks of the gathers), and at most three
// measurements of the peak.
Result<PassResult> fuse_gathers(Graph& graph, const FuseGathersOptions& options, PassContext& context);

}  // namespace fxopt
