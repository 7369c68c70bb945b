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
          "Merge forward values with equal backward values, which undoes recomputation.");
    field("collectives", self.collectives,
          "Merge equal collectives and their waits (every rank must run the same pipeline).");
  }
};

// Merges nodes that compute the same value from the same inputs and the same contents of memory.
// The first such node stays.
//
// Counters: merged. Notes: cross-phase (equal values of different phases, not merged). Remarks:
// written, changed-in-place, values-differ, both-returned, differentiated, given-both, ordered,
// saves-differ (see MergedSaves of ir/step/replay.h). O(nodes + edges + buffers) expected.
Result<PassResult> cse(Graph& graph, const CseOptions& options, PassContext& context);

// Whether `node` may be merged into `kept`, which computes the same value. If it may not, consumers
// of the two still count as reading equal values.
using MayMerge = std::function<bool(NodeId kept, NodeId node)>;

// Like cse(), but merges nodes of equal class rather than of equal phase. With `may_merge`, merges
// only pairs that it allows.
Result<PassResult> cse_within(Graph& graph, const IdMap<NodeId, uint32_t>& classes, const CseOptions& options,
                              PassContext& context, const MayMerge& may_merge = {});

}  // namespace fxopt
