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
          "What forward saves. default: everything backward reads, except values tagged for recompute (PyTorch's "
          "default_partition). min-cut: the fewest bytes that need no costly recompute. save-all: the marked values "
          "(mark-saved); unmarked values are recomputed, except symbols and MUST_SAVE. inference: nothing; backward is "
          "removed.");
    field("compat", self.compat,
          "Which partitioner decides in modes default and min-cut: fxopt's, or PyTorch 2.15's (torch), which ignores "
          "marks (min-cut runs dce and cse first, as PyTorch does).");
    field("prefer-recompute", self.prefer_recompute,
          "For save-all: what becomes of a marked value tagged PREFER_RECOMPUTE. wins: it is recomputed; loses: it is "
          "saved.");
    field("mark-saved", self.mark_saved,
          "Mark saved values (custom.ap_must_save), so that a second compilation saves the same ones.");
    field("cut", self.cut, "false: keep one joint graph, and insert the recomputed copies into its backward.");
  }
};

// Makes a forward and a backward graph of a joint graph, with the calling convention of AOTAutograd:
//
//   forward   (primals) -> (forward outputs, saved tensors, saved objects, saved symbols)
//   backward  (saved symbols, saved tensors, saved objects, tangents) -> (gradients)
//
// What the tags, or the minimal cut, say to compute again is copied into backward as remat does it (passes/recompute/remat.h),
// with its counters, verdicts and errors; forward keeps the original only where something of forward reads it. Backward is
// ordered as autograd runs it, or stays as it is where that has the lower peak (backward_order.h); with compat=torch always as
// autograd runs it, but with mode=default and no tags, where it stays. A graph that is partitioned already stays, with the
// remark `partitioned`.
//
// inference leaves forward alone, as a graph of the kind inference, and takes out what forward made for backward: values nobody
// reads any more, collectives among them. All inputs of forward stay, and so do its effects: writes, draws and assertions.
//
// min-cut begins with dce and cse, as PyTorch's does. It chooses by choice.h, and so does default with compat=torch. By
// compat=torch's minimal cut what is marked backward and depends on no tangent goes into forward where the cut lies after it.
//
// Counters: those of remat (inference: of dce); saved (tensors and objects), saved-symbols, graphs, reordered; tangents
// (inferred, where the file gives no roles); of min-cut those of dce and cse, and into-forward;
// of min-cut and save-all gathers-merged (gathers.h), with the note gathers-apart. Notes: cut (what the cut costs:
// bytes; with compat=torch PyTorch's weights). Warnings: partitioned, unknown-sizes; of save-all marks-lost and
// marks-unread; of compat=torch marks-overridden.
// Errors: those of remat, of plan_split() and of SaveNetwork::solve(); kUnsupportedGraph where no graph, or more than one, is
// joint, or others stand beside it; kBadOptionValue for options that do not go together.
// O(nodes + edges + copies log copies), and min_cut() a bounded number of times.
Result<PassResult> partition(Module& module, const PartitionOptions& options, PassContext& context);

}  // namespace fxopt
