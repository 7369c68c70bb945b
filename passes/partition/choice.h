#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "ir/step/facts.h"
#include "ir/step/tag_rules.h"
#include "passes/pass/context.h"

// Decides what forward saves and backward recomputes. remat carries the decisions out.

namespace fxopt {

struct Choice {
  // Decisions on forward values. A value that is not recomputed is saved if backward reads it.
  TagDecisions decisions;
  // Nodes marked backward that depend on no tangent and that forward must compute for its saved
  // values.
  std::vector<NodeId> into_forward;
  std::optional<int64_t> cost;  // cost of the cut, in the units of the chooser
  int64_t num_marked = 0,
          num_lost = 0;     // marked values: found; missing, if the total is recorded
  int64_t num_unknown = 0;  // storages of unknown size, which cost nothing
};

// The saved set with the fewest bytes that recomputes only cheap operators. Tags win over the cut.
// Rules:
//
//   costs      The bytes of the storage that a call makes. Inputs, attributes and symbols cost
//              nothing, as they exist anyway. A view that can be recomputed is never saved itself:
//              its base is saved. The same holds for a view that a tag saves; its base is then not
//              recomputed.
//   not again  Matrix products, convolutions, attention, sorting, scattering, subgraphs,
//              collectives and waits, draws, writes, values that RepeatRules forbid, and
//              undescribed operators. A call with several results is saved as its results, and
//              they are recomputed only with it.
//   tags       RECOMPUTE if backward needs the value, SAVE always.
//
// Among equal choices it takes the one that saves the latest values. A recomputed value that is
// live at the peak is saved instead if that lowers the peak. Costs are bytes. Errors: those of
// SaveNetwork::solve(). O(nodes + edges), and min_cut().
Result<Choice> choose_min_cut(const Graph& graph, Facts& facts, const PassContext& context);

// Chooses as min_cut_rematerialization_partition of PyTorch 2.15 does, with its defaults and
// without a memory budget. The graph must be prepared by dce and cse as there. Reproduces PyTorch's
// rules against recompute, its weights (bytes, times 1.1 for each step from backward, twice if the
// value would be fused), and its heuristics on distant uses and long chains. Inputs that
// AOTAutograd marks as parameters, buffers or static addresses are free to save. A value that
// memory forbids recomputing, a draw or a write stays saved, with a remark, although PyTorch
// recomputes it. Not reproduced: values that PyTorch's fused Triton kernels and auto_functionalized
// calls take along, and inputs whose mutation runs after the graph. The first `num_forward_outputs`
// leaves of the output are forward's. Costs are such weights. Errors: as above. O((nodes + edges)
// log nodes), and min_cut().
Result<Choice> choose_min_cut_as_torch(const Graph& graph, Facts& facts, const PassContext& context,
                                       size_t num_forward_outputs);

// Chooses as default_partition of PyTorch 2.15 does: saves each value that backward reads and no
// tag recomputes. Unlike fxopt's default, it saves an untagged view whose base is recomputed. An
// untagged value of a checkpoint region is recomputed with the region if backward and the output
// read at most its size. Memory, draws and writes: as above. O(nodes + edges).
Choice choose_default_as_torch(const Graph& graph, Facts& facts);

// Saves the marked values (ir/step/marks.h) and recomputes the rest. Exceptions: symbols; the
// author's MUST_SAVE (remark saved-besides); a policy's MUST_SAVE on a value that cannot be
// recomputed; values that memory forbids recomputing (remat's remarks); the base of a marked view
// (rule inherited). The author's MUST_RECOMPUTE overrides a mark; `prefer` decides for
// PREFER_RECOMPUTE (decide_tags()).
//
// Errors: kUnsupportedGraph if no value is marked, or if only backward computes a marked value.
// remat reports kTagUnrepeatable for an unmarked value that backward needs and that cannot be
// recomputed. O(nodes).
Result<Choice> choose_marked(const Graph& graph, Facts& facts, PreferRecompute prefer);

}  // namespace fxopt
