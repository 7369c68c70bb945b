#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "ir/step/facts.h"
#include "ir/step/tag_rules.h"
#include "passes/pass/context.h"

// Decides which values forward saves and which values backward recomputes. The pass `remat` carries
// out the decisions.

namespace fxopt {

// The assumed value of a symbol without a known value, and the assumed bytes of a storage without a
// known size. PyTorch's partitioner assumes the same (optimization_hint(fallback=4096)).
inline constexpr int64_t kAssumedSize = 4096;

// Returns the known values of symbols (symbol_values()). Symbols without a known value get the
// value kAssumedSize, clamped to the range of the symbol.
SymbolValues sizes_of_symbols(const Module& module, const SymbolValues& given);

struct Choice {
  // Decisions on forward values. A value that is not recomputed is saved if backward reads it.
  TagDecisions decisions;
  // Backward nodes that depend on no tangent and may run in forward. Forward must compute these
  // nodes, because they are saved or because saved values are computed from them.
  std::vector<NodeId> into_forward;
  // The cost of the cut that is taken: bytes for choose_min_cut(), PyTorch's weights for
  // choose_min_cut_as_torch(). Absent for choices without a cut.
  std::optional<int64_t> cost;
  // `num_marked` is the number of names in the save marks (`ap_must_save`) of the graph. A value
  // into which passes merged marked values has several names. `num_lost` is the number of values
  // that an earlier compilation marked and that are missing from the graph (MarkMap::num_lost).
  int64_t num_marked = 0, num_lost = 0;
  int64_t num_unknown = 0;  // number of storages of unknown size, for which the cut assumes a size
};

// Chooses the values to save. Among the choices that recompute only cheap operators, takes the
// choice that saves the fewest bytes. Tags win over the cut. The rules are:
//
//   costs:     The cost of saving a value is the number of bytes of the storages that its call
//              makes. Inputs, attributes and symbols cost nothing, as they exist anyway. If a view
//              can be recomputed, its base is saved instead of the view. If a tag saves such a
//              view, and no tag recomputes the base, the base is saved and is not recomputed.
//   cheap:     Without a recompute tag, only these calls are recomputed: views, copies and other
//              data movement, pointwise operators, reductions, normalizations, index operators
//              like gather and scatter, factories like zeros, getitems, and scalar operators on
//              the host. Matrix products, convolutions, attention, sorting,
//              collectives and their waits, and random operators are therefore not recomputed.
//   excluded:  Without a recompute tag, these calls are not recomputed, even if they are cheap:
//              - calls with subgraphs
//              - compute-intensive operators (OpSet::kComputeIntensive)
//              These calls are not recomputed, even with a recompute tag:
//              - calls that cannot be repeated (why_unrepeatable()), such as writes, and operators
//                that the op table does not describe
//              - calls that RepeatRules (ir/step/repeat.h) does not allow to be recomputed, because
//                of in-place writes or shared memory
//   results:   If a call returns several results, each result is saved on its own, not the tuple.
//              These results are recomputed only together with the call.
//   tags:      A recompute tag is carried out if backward needs the value and the value can be
//              recomputed. A save tag is always carried out.
//
// Among choices of equal cost, takes the choice whose saved values come latest in the schedule.
// Costs are in bytes.
//
// The first result is the choice with the fewest bytes. A second choice follows if it has a lower
// peak by the estimate of StepMemory. The second choice saves values whose copies would be live at
// the peak. Errors: those of SaveNetwork::solve(). Complexity: O(nodes + edges), plus min_cut().
Result<std::vector<Choice>> choose_min_cut(const Graph& graph, Facts& facts, const PassContext& context);

// Chooses as min_cut_rematerialization_partition of PyTorch 2.15 does, with its defaults and
// without a memory budget. The caller must first run `dce` and `cse` on the graph, as PyTorch does.
//
// Reproduces these parts of PyTorch:
// - the rules against recompute
// - the weights (the bytes, times 1.1 for each step on the shortest path from the value to
//   backward, and times 2 if the value would be fused)
// - the heuristics on distant uses and long chains
//
// Does not reproduce these parts:
// - additional values that PyTorch saves or recomputes because of its fused Triton kernels or of
//   auto_functionalized calls
// - the treatment of inputs whose mutation runs after the graph
//
// Inputs that AOTAutograd marks as parameters, buffers or static addresses cost nothing to save.
//
// Two kinds of values stay saved, with a remark, although PyTorch recomputes them:
// - results of calls that cannot be repeated (why_unrepeatable()), such as writes, and random draws
//   without a recorded generator offset. If such a value has the tag MUST_RECOMPUTE and backward
//   needs it, `remat` reports an error.
// - values that RepeatRules (ir/step/repeat.h) does not allow to be recomputed
//
// The first `num_forward_outputs` leaves of the output belong to forward. The cost of the cut is in
// PyTorch's weights. Errors: those of SaveNetwork::solve(). Complexity: O((nodes + edges) log
// nodes), plus min_cut().
Result<Choice> choose_min_cut_as_torch(const Graph& graph, Facts& facts, const PassContext& context,
                                       size_t num_forward_outputs);

// Chooses as default_partition of PyTorch 2.15 does: saves each value that backward reads and that
// no tag recomputes. Unlike fxopt's default, it saves an untagged view whose base is recomputed.
//
// A value of a checkpoint region is recomputed with the region if all these conditions hold:
// - The value is not tagged MUST_SAVE.
// - The graph does not return the value.
// - Backward does not read the elements of the value. Backward may read the sizes of the value.
//
// Calls that cannot be repeated, and values that RepeatRules does not allow to be recomputed, are
// treated as in choose_min_cut_as_torch(). O(nodes + edges).
Choice choose_default_as_torch(const Graph& graph, Facts& facts);

// Saves the values with the save mark `ap_must_save` (ir/step/marks.h) and recomputes all other
// values. The following values are saved without a mark:
// - symbols
// - values that the author tagged MUST_SAVE (remark saved-besides)
// - values that a policy pass such as `sac` tagged MUST_SAVE and that cannot be recomputed
// - values that RepeatRules (ir/step/repeat.h) does not allow to be recomputed; `remat` writes a
//   remark on each of these values
// - the base of a marked view (rule `inherited`)
//
// If the author tagged a marked value MUST_RECOMPUTE, the tag wins over the mark. For
// PREFER_RECOMPUTE, `prefer` decides (see decide_tags()).
//
// Errors: kUnsupportedGraph if no value is marked, or if only backward computes a marked value. If
// backward needs a value that cannot be recomputed, and the value is neither marked nor in the list
// above, `remat` reports kTagUnrepeatable. O(nodes).
Result<Choice> choose_marked(const Graph& graph, Facts& facts, PreferRecompute prefer);

}  // namespace fxopt
