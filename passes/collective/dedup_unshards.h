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
          "keep: sums of two reductions are unchanged; merge: each sum becomes one reduction of the summed inputs. "
          "This reorders sums, which needs --numerics reorders-reductions.");
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
// Two gathers are merged only if they are equal call by call (cse.h). Two gathers of the same
// parameter are not always equal. A remark gives the reason if equal nodes are not merged. If a
// full parameter that stays live across the peak would exceed max-growth, the first gather on each
// side of the peak stays.
//
// With reductions=merge:
//
//   add(wait(reduce_scatter(%x)), wait(reduce_scatter(%y)))
//     =>  wait(reduce_scatter(add(%x, %y)))
//
// The two reductions have the same kind, group, reduction, sizes, phase, tag and stream. The
// reduction is a sum, or an average (avg) of floating-point values. The results of the two
// reductions have no other consumers. The pass merges as many sums as the limit of the peak allows,
// and chooses these sums with at most 32 trials.
//
// The limit applies to the peak of the file's rank. If the graphs of the ranks differ, `fxopt
// ranks` checks whether their results still fit together.
//
// Counters: merged (nodes), merged-reductions. Notes: cross-phase. Graph remarks: peak-bound
// (gathers that are kept for the peak), not-merged (sums of two reductions that are unchanged).
// Warnings: may-differentiate. Expected complexity: O((nodes + edges) * rounds), with one round for
// each time that the peak is above the limit.
Result<PassResult> dedup_unshards(Graph& graph, const DedupUnshardsOptions& options, PassContext& context);

}  // namespace fxopt
