#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "ir/step/facts.h"
#include "ir/step/tag_rules.h"
#include "passes/pass/context.h"

// What forward saves and what backward computes again, decided and not yet done: remat carries it out.

namespace fxopt {

struct Choice {
  // Of forward values; what is not to be computed again is saved where backward reads it.
  TagDecisions decisions;
  // What is marked backward and depends on no tangent, and is to be computed by forward, for what it saves.
  std::vector<NodeId> into_forward;
  std::optional<int64_t> cost;  // of the cut, in the units of who chose
  int64_t num_marked = 0,
          num_lost = 0;     // marked values: found; missing, if the total is recorded
  int64_t num_unknown = 0;  // storages whose bytes are not known, which cost nothing
};

// The cheapest choice by bytes that computes nothing again that costs: of all forward values that can be parted, those that
// keep the fewest bytes alive for backward. Tags decide where they say something. Rules:
//
//   costs      the bytes of the storage a value makes; nothing for inputs, attributes and symbols, which are there anyway. A
//              view that can be made again is never saved by itself: what it is a view of is. Of a view that a tag saves, too,
//              and that is not computed again then
//   not again  matrix products, convolutions, attention, sorting, scattering, subgraphs, collectives and waits, draws, writes, what
//              RepeatRules forbid, what nobody described; a value with several parts is saved by its parts, which go with it
//   tags       RECOMPUTE where backward needs the value, SAVE always
//
// Of equal choices the one that saves the latest values. What is computed again and is there at the peak all the same is saved
// instead where that lowers the peak. Costs are bytes. Errors: those of SaveNetwork::solve().
// O(nodes + edges), and min_cut().
Result<Choice> choose_min_cut(const Graph& graph, Facts& facts, const PassContext& context);

// What min_cut_rematerialization_partition of PyTorch 2.15 chooses, with its defaults and without a memory budget, on a graph
// that dce and cse have made ready as there: its rules for what is not computed again, its weights (bytes, times 1.1 for each step
// from backward, twice for what would be fused), its heuristics on uses far apart and on long chains. Inputs that are parameters,
// buffers or of one address are free to save, as AOTAutograd tells it. What memory forbids, a draw, a write stay saved, with a
// remark, where PyTorch computes them again. Not known here: what its fused Triton kernels and auto_functionalized calls take
// along, inputs whose mutation runs after the graph. `num_forward_outputs` of the output's leaves are forward's. Costs are such
// weights. Errors: as above.
// O((nodes + edges) log nodes), and min_cut().
Result<Choice> choose_min_cut_as_torch(const Graph& graph, Facts& facts, const PassContext& context,
                                       size_t num_forward_outputs);

// What default_partition of PyTorch 2.15 chooses: saved is what backward reads and no tag says to compute again. Not as by our
// default, a view that is not tagged is saved where what it is a view of is computed again; and what a checkpoint region says
// nothing about goes with the region where only the region reads it. What memory forbids, a draw, a write: as above. O(nodes + edges).
Choice choose_default_as_torch(const Graph& graph, Facts& facts);

// Saves the marked values (ir/step/marks.h) and recomputes the rest. Exceptions: symbols; MUST_SAVE
// of the author (remark saved-besides), and of a policy on what cannot be recomputed; values that
// memory forbids recomputing (remat's remarks); the base of a marked view (rule inherited). The
// author's MUST_RECOMPUTE overrides a mark; `prefer` decides for PREFER_RECOMPUTE (decide_tags()).
//
// Errors: kUnsupportedGraph: no marked value; a marked value that only backward computes. For an
// unmarked value that backward needs and that cannot be recomputed, remat reports kTagUnrepeatable.
// O(nodes).
Result<Choice> choose_marked(const Graph& graph, Facts& facts, PreferRecompute prefer);

}  // namespace fxopt
