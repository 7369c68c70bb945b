#pragma once

#include <cstdint>

#include "core/result.h"
#include "passes/pass/context.h"
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
  double max_growth = 0.05;
  ReductionPolicy reductions = ReductionPolicy::kKeep;
  DedupCompat compat = DedupCompat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("max-growth", self.max_growth,
          "The ideal peak of the graph grows by at most this part of it: what would stay whole across the peak is "
          "gathered again; below 0: by any. Not with compat=titan.");
    field("reductions", self.reductions,
          "keep: sums of reductions stay; merge: a sum of two becomes the reduction "
          "of the sum. Sums are added up in another order: needs --numerics reorders-reductions.");
    field("compat", self.compat,
          "fxopt: within a phase; titan: across phases, as torchtitan's deduplicate_fsdp_unshard_chains, so that "
          "backward "
          "does not gather again.");
  }
};

// Lets a parameter that is gathered more than once be gathered once, with the casts and views on the way to the whole one.
//
//   %a = all_gather_into_tensor(%p, 8, "dp")    %b = all_gather_into_tensor(%p, 8, "dp")
//   %w = wait_tensor(%a)                        %v = wait_tensor(%b)            =>   uses of %v read %w
//
// What is merged is equal call by call (cse.h), not only of one parameter; each reason against is a remark. Only the first of
// what lies on one side of the peak and the first on the other stay where the whole one must not be kept between.
//
// With reductions=merge:
//
//   add(wait(reduce_scatter(%x)), wait(reduce_scatter(%y)))   =>   wait(reduce_scatter(add(%x, %y)))
//
// of one kind, group, reduction (sum, of floating types avg), sizes, phase, tag and stream, whose results nobody else reads, as
// many as stay within the same bound of the peak; which these are is tried 32 times at most.
//
// Where the peak decides it is this rank's: of ranks with unlike graphs fxopt ranks says whether they still fit together.
//
// Counters: merged (nodes), merged-reductions. Notes: cross-phase. Warnings: peak-bound (gathers that stay for the peak),
// not-merged (reductions that stay). O((nodes + edges) * rounds) expected, with a round for each time that the peak stands
// against it.
Result<PassResult> dedup_unshards(Graph& graph, const DedupUnshardsOptions& options, PassContext& context);

}  // namespace fxopt
