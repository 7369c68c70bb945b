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
// The first of the equal nodes stays.
//
// Counters: merged. Notes: cross-phase (equal values of different phases, which are not merged).
// The remark on equal nodes that are not merged has one of these codes:
// - written: a node writes in place to the result of the later node. Collectives also get this code
//   if a node writes to an input of a collective that may still read this input (is_raced() in
//   ir/alias/collectives.h).
// - changed-in-place: a node changes the sizes, strides or storage of a result in place.
// - values-differ: the recorded metadata of the results differ.
// - both-returned: the graph returns both results.
// - differentiated: autograd may differentiate the graph, and gradients would round differently.
// - given-both: both results are operands of one call, and this call writes to an operand.
// - ordered: the later node has control dependencies that the earlier node does not have.
// - saves-differ: a later partition would save other values (MergedSaves in ir/step/replay.h).
//
// Expected complexity: O(nodes + edges + buffers).
Result<PassResult> cse(Graph& graph, const CseOptions& options, PassContext& context);

// Whether `node` may be merged into `kept`, which computes the same value. If the merge is not
// allowed, the consumers of both nodes are still treated as consumers of equal values.
using MayMerge = std::function<bool(NodeId kept, NodeId node)>;

// Like cse(), but merges equal nodes if they have the same class in `classes`, and ignores phases.
// If `may_merge` is set, merges only the pairs that it allows.
Result<PassResult> cse_within(Graph& graph, const IdMap<NodeId, uint32_t>& classes, const CseOptions& options,
                              PassContext& context, const MayMerge& may_merge = {});

}  // namespace fxopt
