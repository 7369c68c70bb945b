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
          "Largest growth of the graph's ideal peak, as a fraction of it. Parameters that would stay gathered across "
          "the peak are regathered. Negative: no limit. Not with compat=titan.");
    field("reductions", self.reductions,
          "keep: sums of two reductions are unchanged; merge: the sum becomes one reduction of the summed inputs. "
          "This reorders sums, which needs --numerics reorders-reductions.");
    field("compat", self.compat,
          "fxopt: reuse within a phase; titan: reuse across phases, as torchtitan's deduplicate_fsdp_unshard_chains "
          "does, so that backward does not regather.");
  }
};

// Reuses a gathered parameter instead of gathering it again, with the casts and views up to the
// full parameter.
//
//   %a = all_gather_into_tensor(%p, 8, "dp")
//   %w = wait_tensor(%a)
//   %b = all_gather_into_tensor(%p, 8, "dp")   =>   consumers of %v read %w
//   %v = wait_tensor(%b)
//
// Merged gathers are equal call by call (cse.h); a common parameter does not suffice. A remark
// gives each reason against a merge. If the full parameter must not stay live across the peak, the
// first gather on each side of the peak stays.
//
// With reductions=merge:
//
//   add(wait(reduce_scatter(%x)), wait(reduce_scatter(%y)))
//     =>  wait(reduce_scatter(add(%x, %y)))
//
// Both reductions have the same kind, group, reduction (sum; avg for floating types), sizes, phase,
// tag and stream, and their results have no other consumers. As many sums are merged as the limit
// of the peak allows; at most 32 trials choose them.
//
// The peak is that of the file's rank: if the ranks' graphs differ, `fxopt ranks` checks whether
// the results still fit together.
//
// Counters: merged (nodes), merged-reductions. Notes: cross-phase. Warnings: peak-bound (gathers
// kept for the peak), not-merged (reductions that are unchanged). O((nodes + edges) * rounds)
// expected, with one round for each time that the peak is above the limit.
Result<PassResult> dedup_unshards(Graph& graph, const DedupUnshardsOptions& options, PassContext& context);

}  // namespace fxopt
