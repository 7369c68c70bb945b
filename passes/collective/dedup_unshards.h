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
          "Largest growth of the graph's ideal peak (live bytes), as a fraction of that peak. If merging would "
          "exceed this limit, gathers before the peak are not merged with gathers after the peak. Negative: no limit. "
          "The option max-growth cannot be used with compat=titan.");
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
//   %a = all_gather_into_tensor(%p, 8, "dp")       %a = all_gather_into_tensor(%p, 8, "dp")
//   %w = wait_tensor(%a)                           %w = wait_tensor(%a)
//   %x = mm(%c, %w)                           =>   %x = mm(%c, %w)
//   %b = all_gather_into_tensor(%p, 8, "dp")       %y = mm(%d, %w)
//   %v = wait_tensor(%b)
//   %y = mm(%d, %v)
//
// The path from the shard to the full parameter consists of calls: the all-gather, the wait, views,
// casts and other data movement. The pass merges these calls one by one. Two calls are merged only
// if the equality proof of the pass `cse` shows that they return the same value (cse.h). A remark
// gives the reason if equal nodes are not merged.
//
// If all merges together would raise the peak above the limit max-growth, the pass leaves some
// merges out. The pass repeats these steps until the peak is within the limit, or until no gathers
// are merged:
// - Find each part of the schedule in which the live bytes would be above the limit.
// - Do not merge a gather after the start of such a part with a gather before the start. Otherwise
//   the full parameter would be live in between. Gathers on the same side of the start are still
//   merged.
// - If no merge crosses such a start, leave out all merges of this round. Later rounds may merge a
//   repeated gather with another repeated gather, but not with the first gather.
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
