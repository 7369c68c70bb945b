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
    field(
        "mode", self.mode,
        "The values that forward saves. default: everything backward reads, except values tagged for recompute "
        "(PyTorch's default_partition). min-cut: a minimal cut that recomputes only cheap operators. Several cuts are "
        "tried, and the cut with the lowest peak of live bytes wins. PyTorch's cut is tried only if the graph has no "
        "tags, no marks `ap_must_save` and no collectives. save-all: the values with the mark `ap_must_save`, which an "
        "earlier partition wrote (mark-saved=true). All other values are recomputed, except symbols and values tagged "
        "MUST_SAVE. inference: nothing, because backward is removed.");
    field("compat", self.compat,
          "Which partitioner decides in modes default and min-cut. fxopt: the partitioner of fxopt; torch: the "
          "partitioner of PyTorch 2.15, which ignores the marks `ap_must_save`.");
    field("prefer-recompute", self.prefer_recompute,
          "With mode=save-all: how to treat a value that has the mark `ap_must_save` and the tag PREFER_RECOMPUTE. "
          "wins: the tag wins, and the value is recomputed; loses: the value is saved.");
    field("mark-saved", self.mark_saved,
          "Write the mark `ap_must_save` into the metadata `custom` of each saved value. A second compilation with "
          "mode=save-all then saves the marked values.");
    field("cut", self.cut, "false: keep one joint graph, and insert the recomputed copies into its backward part.");
  }
};

// Splits a joint graph into a forward and a backward graph. The two graphs have the calling
// convention of AOTAutograd:
//
//   forward   (primals) -> (forward outputs, saved tensors, saved objects, saved symbols)
//   backward  (saved symbols, saved tensors, saved objects, tangents) -> (gradients)
//
// The tags or the minimal cut decide which values backward recomputes. The pass copies these values
// into backward in the same way as the pass `remat` (passes/recompute/remat.h), with the counters,
// verdicts and errors of `remat`. Forward keeps the original of a copied value only if forward uses
// the original.
//
// The order of backward depends on `compat`:
//
//   fxopt:  the order of autograd (backward_order.h). If the order in the joint graph has the lower
//           peak, backward keeps the order in the joint graph.
//   torch:  the order of autograd, regardless of the peak. With mode=default, if no node has a
//           recompute tag, backward keeps the order in the joint graph.
//
// If the graph is already partitioned, the pass only writes the remark `partitioned`.
//
// mode=inference keeps only forward, as a graph of kind inference. This mode removes the values
// that forward computed only for backward, including collectives. All inputs, writes, draws and
// assertions of forward stay.
//
// mode=min-cut starts with `dce` and `cse`, as PyTorch does. The functions of choice.h choose the
// saved values for mode=min-cut and mode=save-all, and for mode=default with compat=torch. The
// candidates for mode=min-cut are the choices of choose_min_cut(). PyTorch's cut is also a
// candidate if the graph has no tags, no save marks (`ap_must_save`) and no collectives. Each
// candidate is carried out in a copy of the module, and the candidate whose step has the lowest
// peak of live bytes is taken.
//
// PyTorch's cut moves a call into forward if all of these conditions hold:
// - The call is backward in PhaseMap, for example because of its phase marker.
// - PyTorch's partitioner does not keep the call in backward. It keeps a call that depends on a
//   tangent, has the marker must_be_in_backward, or has the marker is_backward and writes an
//   argument. It also keeps every call that depends on a kept call.
// - Forward saves the value of the call, or needs this value to compute another saved value.
//
// Counters:
// - all modes except inference: the counters of `remat`, saved (tensors and objects),
//   saved-symbols, reordered
// - inference: the counters of `dce`
// - all modes: graphs, tangents (number of inferred tangents). Tangents are inferred only if the
//   graph records no tangents.
// - min-cut: the counters of `dce` and `cse`, into-forward
// - min-cut and save-all: gathers-merged (gathers.h), with the note gathers-apart
//
// Notes:
// - cut (min-cut): the cost of the cut that is taken. With compat=fxopt, the unit is bytes. With
//   compat=torch, the unit is PyTorch's weight (choose_min_cut_as_torch() in choice.h). Exception:
//   if PyTorch's cut is taken with compat=fxopt, the note is absent.
// - marked (save-all): number of names of the marked values in the graph (MarkMap::num_names)
//
// Warnings: unknown-sizes, marks-lost (save-all), marks-overridden (compat=torch).
// Remarks: partitioned, marks-unread (save-all).
//
// Errors:
// - the errors of `remat`, of plan_split(), of SaveNetwork::solve() and of choose_marked()
// - kUnsupportedGraph if the module has neither a joint graph nor a backward graph. Exception: with
//   mode=inference, the main graph may have the kind inference.
// - kUnsupportedGraph if the module has several joint graphs
// - kUnsupportedGraph if the module has a joint graph, and also a forward or backward graph
// - kUnsupportedGraph if the module has a joint graph, and runs its graphs several times in a step
// - kBadOptionValue if options contradict each other
//
// Complexity: O(nodes + edges + copies log copies), plus a bounded number of calls of min_cut().
Result<PassResult> partition(Module& module, const PartitionOptions& options, PassContext& context);

}  // namespace fxopt
