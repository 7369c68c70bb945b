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
          "Number of matmuls, convolutions and attentions in a row after which ready reduce-scatters are issued; 0: no "
          "limit.");
    field("max-live", self.max_live,
          "Live bytes above which ready reduce-scatters are issued and earlier ones are waited for; 0: no limit. This "
          "depends on the rank's own storages, so ranks with unlike graphs may get unlike orders.");
  }
  Status check() const;
};

// Interleaves reduce-scatters with long runs of compute, so that their inputs do not pile up.
//
//   %g1 = mm  %g2 = mm ... %g40 = mm                  %g1 = mm ... %g8 = mm
//   %r1 = reduce_scatter(%g1)  %w1 = wait(%r1)        %r1 = reduce_scatter(%g1) ... %r8 = ...
//   ...                                         =>    %g9 = mm ... %g16 = mm
//                                                     %w1 = wait(%r1) ... %w8 = wait(%r8)
//                                                     %r9 = reduce_scatter(%g9) ...
//
// One sweep in schedule order. Ready reduce-scatters are issued, in their order, before a
// computation that would exceed a limit: `max-consecutive` computations follow the last
// reduce-scatter, or live bytes would rise above `max-live`. Earlier reduce-scatters are waited for
// first. The new ones are waited for at once if live bytes would still be above the limit.
//
// A reduce-scatter is ready if its dependences (ir/alias/dependence.h) are placed, or are views,
// casts and concatenations that can be placed with it. It never passes another collective of its
// group. All other nodes keep their order. Nodes are classified by operator, never by name.
//
// Counters: moved. Notes: longest (computations in a row in the output graph). Warnings: long-runs
// (more computations in a row, as no reduce-scatter was ready). Exact. O(nodes + dependences).
Result<PassResult> compute_cap(Graph& graph, const ComputeCapOptions& options, PassContext& context);

}  // namespace fxopt
