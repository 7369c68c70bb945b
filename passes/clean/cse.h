#pragma once

#include <cstdint>
#include <functional>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct CseOptions {
  bool across_phases = false;
  bool collectives = false;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("across-phases", self.across_phases,
          "Merge values of forward with those of backward, which undoes recomputation.");
    field("collectives", self.collectives,
          "Merge equal collectives and their waits (every rank must run the same pipeline).");
  }
};

// Merges nodes that compute the same value from the same inputs and the same contents of memory; the first stays.
//
// Counters: merged. Notes: cross-phase (equal values of different phases, left apart).
// Remarks: written, changed-in-place, values-differ, both-returned, differentiated, given-both, ordered, saves-differ
// (see MergedSaves of ir/step/replay.h).
// O(nodes + edges + buffers) expected.
Result<PassResult> cse(Graph& graph, const CseOptions& options, PassContext& context);

// Whether `node` may be merged into `kept`, which computes the same. Where it may not, what reads the one still equals what reads the
// other.
using MayMerge = std::function<bool(NodeId kept, NodeId node)>;

// The same between nodes of one class, in place of one phase; where `may_merge` is given, only those.
Result<PassResult> cse_within(Graph& graph, const IdMap<NodeId, uint32_t>& classes, const CseOptions& options,
                              PassContext& context, const MayMerge& may_merge = {});

}  // namespace fxopt
