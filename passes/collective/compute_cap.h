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
    field(
        "max-consecutive", self.max_consecutive,
        "Largest number of matmuls, convolutions and attentions in a row; 0: no limit. Before a computation that would "
        "exceed this limit, the pass issues the reduce-scatters whose inputs are available.");
    field("max-live", self.max_live,
          "Largest number of live bytes; 0: no limit. Before a computation that would exceed this limit, the pass "
          "issues the reduce-scatters whose inputs are available. If the limit would still be exceeded, it also places "
          "the waits for the issued reduce-scatters. Live bytes depend on the rank's own graph, so ranks with "
          "different graphs may get different orders.");
  }
  Status check() const;
};

// Interleaves reduce-scatters with long runs of compute, so that inputs of reduce-scatters do not
// pile up.
//
//   %g1 = mm  %g2 = mm ... %g40 = mm                  %g1 = mm ... %g8 = mm
//   %r1 = reduce_scatter(%g1)  %w1 = wait(%r1)        %r1 = reduce_scatter(%g1) ... %r8 = ...
//   ...                                         =>    %g9 = mm ... %g16 = mm
//                                                     %w1 = wait(%r1) ... %w8 = wait(%r8)
//                                                     %r9 = reduce_scatter(%g9) ...
//
// The pass sweeps once over the schedule. Computations are matmuls, convolutions and attentions.
// Before a computation that would exceed a limit, the pass issues the ready reduce-scatters in
// their order. The limits are:
// - max-consecutive: the number of computations after the last reduce-scatter
// - max-live: the live bytes
//
// The pass places the waits for earlier reduce-scatters first. If live bytes would still be above
// the limit, it also places the waits for the new reduce-scatters at once.
//
// A reduce-scatter is ready if each of its dependences (ir/alias/dependence.h) is already placed,
// or can be placed together with the reduce-scatter. Only views, casts and concatenations can be
// placed together with a reduce-scatter. A reduce-scatter never passes another collective of its
// group. All other nodes keep their order.
//
// Counters: moved. Notes: longest (the length of the longest run of computations in the output
// graph). Remarks: long-runs (more computations in a row than the limit, because no reduce-scatter
// was ready). Numerics: exact. Complexity: O(nodes + dependences).
Result<PassResult> compute_cap(Graph& graph, const ComputeCapOptions& options, PassContext& context);

}  // namespace fxopt
