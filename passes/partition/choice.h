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

// The value of a symbol, and the bytes of a storage, whose size nothing determines. PyTorch's
// partitioner assumes the same (optimization_hint(fallback=4096)).
inline constexpr int64_t kAssumedSize = 4096;

// Returns symbol_values(), and for each other symbol kAssumedSize, clamped to the symbol's range.
SymbolValues sizes_of_symbols(const Module& module, const SymbolValues& given);

struct Choice {
  // Decisions on forward values. A value that is not recomputed is saved if backward reads it.
  TagDecisions decisions;
  // The nodes that are marked backward and depend on no tangent, but that forward must compute for
  // its saved values.
  std::vector<NodeId> into_forward;
  std::optional<int64_t> cost;  // the cost of the cut, in the units of the chooser
  int64_t num_marked = 0,
          num_lost = 0;     // marked values: found; missing, if the total is recorded
  int64_t num_unknown = 0;  // the storages whose size the cut assumes
};

// Chooses the saved set with the fewest bytes that recomputes only cheap operators. Tags win over
// the cut. The rules are:
//
//   costs      A value costs the bytes of the storages that its call makes. Inputs, attributes and
//              symbols cost nothing, as they exist anyway. If a view can be recomputed, its base is
//              saved instead of the view. If a tag saves the view, its base is also saved instead,
//              and the base is not recomputed.
//   not again  These calls are not recomputed: matrix products, convolutions, attention, sorting,
//              scattering, subgraphs, collectives and waits, draws, writes, values that RepeatRules
//              forbid, and undescribed operators. For a call with several results, the results are
//              saved, not the call. These results are recomputed only together with the call.
//   tags       A recompute tag is carried out if backward needs the value. A save tag is always
//              carried out.
//
// Among choices of equal cost, takes the choice that saves the latest values. Costs are in bytes.
//
// Returns the minimum first. If a different choice has a lower peak by the estimate of StepMemory,
// because it saves values whose copies are live at the peak, returns this choice second. Errors:
// those of SaveNetwork::solve(). Complexity: O(nodes + edges), plus min_cut().
Result<std::vector<Choice>> choose_min_cut(const Graph& graph, Facts& facts, const PassContext& context);

// Chooses as min_cut_rematerialization_partition of PyTorch 2.15 does, with its defaults and
// without a memory budget. The caller must first run dce and cse on the graph, as PyTorch does.
//
// Reproduces these parts of PyTorch:
// - the rules against recompute
// - the weights (the bytes, times 1.1 for each step from backward, and doubled if the value would
//   be fused)
// - the heuristics on distant uses and long chains
//
// Does not reproduce these parts:
// - values that PyTorch's fused Triton kernels and auto_functionalized calls save or recompute in
//   addition
// - inputs whose mutation runs after the graph
//
// Inputs that AOTAutograd marks as parameters, buffers or static addresses cost nothing to save.
// Three kinds of values stay saved, with a remark, although PyTorch recomputes them: draws, writes,
// and values that memory forbids recomputing. The first `num_forward_outputs` leaves of the output
// belong to forward. The cost of the cut is in PyTorch's weights. Errors: those of
// SaveNetwork::solve(). Complexity: O((nodes + edges) log nodes), plus min_cut().
Result<Choice> choose_min_cut_as_torch(const Graph& graph, Facts& facts, const PassContext& context,
                                       size_t num_forward_outputs);

// Chooses as default_partition of PyTorch 2.15 does: saves each value that backward reads and that
// no tag recomputes. Unlike fxopt's default, it saves an untagged view whose base is recomputed.
//
// A value of a checkpoint region is recomputed with the region if the value is not tagged
// MUST_SAVE, and if backward and the output read at most the sizes of the value. Draws, writes, and
// values that memory forbids recomputing are treated as in choose_min_cut_as_torch(). O(nodes +
// edges).
Choice choose_default_as_torch(const Graph& graph, Facts& facts);

// Saves the marked values (ir/step/marks.h) and recomputes all other values. The following values
// are saved without a mark:
// - symbols
// - values that the author tagged MUST_SAVE (remark saved-besides)
// - values that a policy tagged MUST_SAVE and that cannot be recomputed
// - values that memory forbids recomputing (remarks of remat)
// - the base of a marked view (rule inherited)
//
// If the author tagged a marked value MUST_RECOMPUTE, the tag wins over the mark. For
// PREFER_RECOMPUTE, `prefer` decides (see decide_tags()).
//
// Errors: kUnsupportedGraph if no value is marked, or if only backward computes a marked value. If
// backward needs an unmarked value that cannot be recomputed, remat reports kTagUnrepeatable.
// O(nodes).
Result<Choice> choose_marked(const Graph& graph, Facts& facts, PreferRecompute prefer);

}  // namespace fxopt
