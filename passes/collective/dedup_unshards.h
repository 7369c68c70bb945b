#pragma once

#include <cstdint>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/options.h"
#include "passes/pass/pass.h"

namespace fxopt {

enum class DedupCompat : uint8_t {
  kFxopt,
  kTitan,
};
template <>
struct EnumNames<DedupCompat> {
  static constexpr EnumName<DedupCompat> kAll[] = {{DedupCompat::kFxopt, "fxopt"}, {DedupCompat::kTitan, "titan"}};
};

enum class ReductionPolicy : uint8_t {
  kKeep,
  kMerge,
};
template <>
struct EnumNames<ReductionPolicy> {
  static constexpr EnumName<ReductionPolicy> kAll[] = {{ReductionPolicy::kKeep, "keep"},
                                                       {ReductionPolicy::kMerge, "merge"}};
};

struct DedupUnshardsOptions {
  Share max_growth = {0.05};
  ReductionPolicy reductions = ReductionPolicy::kKeep;
  DedupCompat compat = DedupCompat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("max-growth", self.max_growth,
          "Largest growth of the graph's ideal peak (live bytes), as a fraction of that peak. Above this limit, "
          "parameters are gathered again after the peak. Negative: no limit. Not with compat=titan.");
    field(
        "reductions", self.reductions,
        "How to treat the sum of two reduce-scatters or of two all-reduces. keep: leave the sum unchanged; merge: add "
        "the two inputs first, and reduce once. Merging reorders sums, which needs --numerics reorders-reductions.");
    field("compat", self.compat,
          "fxopt: reuse gathers within a phase; titan: reuse gathers across phases, as torchtitan's "
          "deduplicate_fsdp_unshard_chains "
          "does, so that backward does not regather.");
  }
};

// Reuses a gathered parameter instead of gathering it again. The casts and views up to the full
// parameter are reused too.
//
//   %a = all_gather_into_tensor(%p, 8, "dp")
//   %w = wait_tensor(%a)
//   %b = all_gather_into_tensor(%p, 8, "dp")   =>   consumers of %v read %w
//   %v = wait_tensor(%b)
//
// Two gathers are merged only if `cse` proves that each call of one equals a call of the other
// (cse.h). A remark gives the reason if equal nodes are not merged. If a full parameter would stay
// live across the peak and raise it above max-growth, the first gather on each side of the peak
// stays.
//
// With reductions=merge:
//
//   add(wait(reduce_scatter(%x)), wait(reduce_scatter(%y)))
//     =>  wait(reduce_scatter(add(%x, %y)))
//
// The two reductions have the same kind, group, reduction, sizes, phase, tag and stream. The
// reduction is a sum, or an average (avg) of floating-point values. The results of the two
// reductions have no other consumers. The pass searches for sums that can be merged within the
// limit of the peak, with at most 32 trials.
//
// The limit applies to the peak of the file's rank. If the graphs of the ranks differ, `fxopt
// ranks` checks whether their results still fit together.
//
// Counters: merged (nodes), merged-reductions. Graph remarks: peak-bound (gathers that are repeated
// to limit the peak), not-merged (sums of two reductions that are unchanged). Warnings:
// may-differentiate (autograd may differentiate the graph, so nothing is changed). Expected
// complexity: O((nodes + edges) * rounds), with one round for each time that the peak is above the
// limit.
Result<PassResult> dedup_unshards(Graph& graph, const DedupUnshardsOptions& options, PassContext& context);

}  // namespace fxopt
