#pragma once

#include <cstdint>

#include "core/result.h"
#include "ir/step/tag_rules.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

enum class PartitionMode : uint8_t {
  kDefault,
  kMinCut,
  kSaveAll,
  kInference,
};
template <>
struct EnumNames<PartitionMode> {
  static constexpr EnumName<PartitionMode> kAll[] = {{PartitionMode::kDefault, "default"},
                                                     {PartitionMode::kMinCut, "min-cut"},
                                                     {PartitionMode::kSaveAll, "save-all"},
                                                     {PartitionMode::kInference, "inference"}};
};

struct PartitionOptions {
  PartitionMode mode = PartitionMode::kDefault;
  Compat compat = Compat::kFxopt;
  PreferRecompute prefer_recompute = PreferRecompute::kWins;
  bool mark_saved = false;
  bool cut = true;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("mode", self.mode,
          "The values that forward saves. default: everything backward reads, except values tagged for recompute "
          "(PyTorch's default_partition). min-cut: the fewest bytes that need no costly recompute. save-all: the "
          "marked values (mark-saved); unmarked values are recomputed, except symbols and MUST_SAVE. inference: "
          "nothing; backward is removed.");
    field("compat", self.compat,
          "Which partitioner decides in modes default and min-cut: fxopt's, or PyTorch 2.15's (torch), which ignores "
          "marks (min-cut runs dce and cse first, as PyTorch does).");
    field("prefer-recompute", self.prefer_recompute,
          "For save-all: how to treat a marked value tagged PREFER_RECOMPUTE. wins: it is recomputed; loses: it is "
          "saved.");
    field("mark-saved", self.mark_saved,
          "Mark saved values (custom.ap_must_save), so that a second compilation saves the same ones.");
    field("cut", self.cut, "false: keep one joint graph, and insert the recomputed copies into its backward.");
  }
};

// Splits a joint graph into a forward and a backward graph, with the calling convention of
// AOTAutograd:
//
//   forward   (primals) -> (forward outputs, saved tensors, saved objects, saved symbols)
//   backward  (saved symbols, saved tensors, saved objects, tangents) -> (gradients)
//
// Values that the tags or the minimal cut recompute are copied into backward as by remat
// (passes/recompute/remat.h), with its counters, verdicts and errors. Forward keeps the original
// only if forward uses it. Backward is put into autograd's order, unless its present order has the
// lower peak (backward_order.h). With compat=torch it always gets autograd's order, except that
// mode=default without tags keeps its order. A graph that is already partitioned stays, with the
// remark `partitioned`.
//
// inference keeps only forward, as a graph of kind inference. It removes values that forward made
// only for backward, including collectives. All inputs of forward stay, and so do its writes, draws
// and assertions.
//
// min-cut starts with dce and cse, as PyTorch does. min-cut, and default with compat=torch, choose
// by choice.h. With compat=torch, min-cut moves nodes that are marked backward but depend on no
// tangent into forward if the cut comes after them.
//
// Counters: those of remat (inference: those of dce); saved (tensors and objects), saved-symbols,
// graphs, reordered; tangents (inferred, if the file gives no roles). min-cut also has those of dce
// and cse, and into-forward. min-cut and save-all also have gathers-merged (gathers.h), with the
// note gathers-apart. Notes: cut (the cost of the cut: bytes; with compat=torch PyTorch's weights).
// Warnings: unknown-sizes; for save-all marks-lost; for compat=torch marks-overridden. Remarks:
// partitioned; for save-all marks-unread.
//
// Errors: those of remat, of plan_split() and of SaveNetwork::solve(). kUnsupportedGraph if no
// graph, or more than one, is joint, or if the module has forward or backward graphs beside it.
// kBadOptionValue for options that exclude each other.
// O(nodes + edges + copies log copies), and min_cut() a bounded number of times.
Result<PassResult> partition(Module& module, const PartitionOptions& options, PassContext& context);

}  // namespace fxopt
