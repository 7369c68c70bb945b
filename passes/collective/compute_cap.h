#pragma once

#include <cstdint>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/options.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct ComputeCapOptions {
  int64_t max_consecutive = 8;
  Bytes max_live = {0};

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("max-consecutive", self.max_consecutive,
          "At most so many matmuls, convolutions and attentions stand in a row where a reduce-scatter could be issued "
          "between; 0: any number.");
    field(
        "max-live", self.max_live,
        "Reduce-scatters that can be issued are, and the ones before are waited for, where more bytes than that are "
        "live; 0: any. It hangs on this rank's own storages: ranks with unlike graphs may end up with unlike orders.");
  }
  Status check() const;
};

// Issues reduce-scatters between computations that stand in a row, so that what they reduce does not pile up.
//
//   %g1 = mm  %g2 = mm ... %g40 = mm                    %g1 = mm ... %g8 = mm  %r1 = reduce_scatter(%g1) ... %r8 = ...
//   %r1 = reduce_scatter(%g1)  %w1 = wait(%r1)    =>    %g9 = mm ... %g16 = mm  %w1 = wait(%r1) ... %w8 = wait(%r8)
//   ...                                                 %r9 = reduce_scatter(%g9) ...
//
// One sweep in schedule order. Where `max-consecutive` computations stand since the last reduce-scatter, or the next one makes
// more than `max-live` bytes live, those that can be issued are, in their order, with the views, casts and concatenations that
// they need; what the ones before made is waited for first, and their own results too where memory is still short. One can be
// issued when all that it depends on is there (ir/alias/dependence.h), but for such nodes; none passes another collective of its
// group. All else keeps its order. Nodes are told by what they are, not by name.
//
// Counters: moved. Notes: longest (computations in a row, afterwards). Warnings: long-runs, where more stand in a row, as nothing
// could be issued between. Exact. O(nodes + dependences).
Result<PassResult> compute_cap(Graph& graph, const ComputeCapOptions& options, PassContext& context);

}  // namespace fxopt
