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
        "Condition for fusing. none: fuse without comparing times; cost: do not fuse if the fused gather takes longer "
        "than the gathers that it replaces. Times come from the link speeds of --device or from --measurement. "
        "Unknown times do not prevent fusing.");
    field("create-groups", self.create_groups,
          "Add a process group if no group in the file has the ranks of the fused gather in the required order. The "
          "file must list a device mesh of these ranks. Optimize the files of all ranks with the same passes. Before "
          "the training step, every rank must create the process group.");
  }
};

// Fuses nested all-gathers into one all-gather, over the group of all their ranks.
//
//   %a = all_gather_into_tensor(%x, 16, "dp")
//   %v = wait_tensor(%a)                            %b = all_gather_into_tensor(%x, 128, "dp_tp")
//   %b = all_gather_into_tensor(%v, 8, "tp")   =>   %w = wait_tensor(%b)
//   %w = wait_tensor(%b)
//
// Order:  In the group of the fused gather, the ranks of the first gather vary fastest. On a mesh
//         [dp, tp], gathering over dp before tp needs a group whose ranks run down the columns.
//         Gathering over tp before dp needs a group whose ranks run along the rows
//         (ir/alias/rank_order.h). Groups are identified by their ordered ranks, never by name.
// Legal:  The views between two gathers must show the whole result of the first gather, in
//         unchanged order. By ATen's view rules, the last view must be row-major
//         (ir/alias/view_geometry.h). A chain of gathers ends at
//         - a reshape that copies,
//         - another consumer of the first gather, of the wait for this gather, or of the views,
//         - a write to the gather's input,
//         - a node with another phase or tag, or
//         - a control dependency or an event on any of these nodes.
// Place:  The fused gather is placed at the first of the gathers that it replaces if two conditions
//         hold:
//         - Between the first and the last of these gathers, there is no other collective, no
//           barrier, and no call with unknown effects. Gathers that the pass replaces do not count.
//         - If all fused gathers that meet the first condition are placed early, the peak of live
//           bytes does not grow on any device.
//         If a condition does not hold, the fused gather is placed at the last of these gathers.
//         The second condition may hold on one rank and not on another rank. All ranks still issue
//         their collectives in the same order, because an early fused gather does not move past
//         another collective.
// Cost:   All ranks of a mesh must decide in the same way, even if their groups are spread over
//         machines in different ways. Therefore the pass compares the times of all groups of the
//         mesh, not only of the groups of the file's rank. For example, a mesh [dp, tp] of 16 x 8
//         ranks has 16 groups along tp. With gate=cost, the pass fuses gathers if one of the times
//         is unknown, or if
//
//           slowest(fused gather)  <=  fastest(first gather) + fastest(second gather) + ...
//
//         The groups of a gather are all groups of the mesh along the same dimensions. `fastest` is
//         the shortest time of the gather in any of its groups, and `slowest` is the longest time.
//         If no single mesh of the file determines the order of the ranks, only the groups of the
//         file's rank are compared.
//
// A run of gathers in a chain is fused if a group for it exists or can be created, and if the
// option `gate` allows it. The pass tries the longest run first.
//
// Counters: fused (gathers that were erased), groups (created). Every nested gather that is not
// fused gets a remark with the reason. Graph remark: left-out.
//
// Warnings:
// - may-differentiate: autograd may differentiate the graph, so nothing is changed
// - groups-created: every rank must create the added groups
// - ranks-assumed: the order is correct only if ranks are numbered along a mesh, but the file does
//   not list the mesh
// - cost-unknown: gathers are fused without comparing costs
//
// Complexity: O(nodes + edges + ranks of the gathers), and at most three measurements of the peak.
Result<PassResult> fuse_gathers(Graph& graph, const FuseGathersOptions& options, PassContext& context);

}  // namespace fxopt
