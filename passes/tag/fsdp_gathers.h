#pragma once

#include <cstdint>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"
#include "passes/tag/policy.h"

namespace fxopt {

enum class GatherPolicy : uint8_t {
  kRecompute,
  kSave,
};
template <>
struct EnumNames<GatherPolicy> {
  static constexpr EnumName<GatherPolicy> kAll[] = {{GatherPolicy::kRecompute, "recompute"},
                                                    {GatherPolicy::kSave, "save"}};
};

enum class GatherReach : uint8_t {
  kChain,
  kWait,
};
template <>
struct EnumNames<GatherReach> {
  static constexpr EnumName<GatherReach> kAll[] = {{GatherReach::kChain, "chain"}, {GatherReach::kWait, "wait"}};
};

struct FsdpGathersOptions {
  GatherPolicy policy = GatherPolicy::kRecompute;
  GatherReach through = GatherReach::kChain;
  TagStrength strength = TagStrength::kMust;
  MarkedValues marked = MarkedValues::kKeep;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("policy", self.policy,
          "recompute: backward gathers parameters again (reshard after forward); save: backward reads the gathered "
          "parameters of forward.");
    field("through", self.through,
          "Which calls after an all-gather get the same tag as the all-gather. chain: all calls that only view, copy, "
          "cast, split or join "
          "the gathered parameter; wait: only the calls up to the wait. With wait, partition{compat=torch} can save a "
          "view of the gathered parameter, such as its transpose.");
    field("strength", self.strength, kStrengthHelp);
    field("marked", self.marked, kMarkedHelp);
  }
  Status check() const;
};

// Tags the FSDP all-gathers of forward. An all-gather belongs to FSDP if it gathers only
// parameters. The recorded or inferred roles of the graph's inputs show which inputs are
// parameters. With policy=recompute, the pass tags these calls:
// - the casts and views before an FSDP all-gather
// - the all-gather, and its wait
// - with through=chain, also the calls after the wait that only view, copy, cast, split or join
//   gathered parameters
//
// With policy=save, the pass tags only calls in this list that allocate the memory of a gathered
// parameter, and only if nodes outside of the list read this memory. For example, the wait and a
// view share the memory of the all-gather. If a matmul reads the view, only the all-gather is
// tagged.
//
// An existing MUST_SAVE stays, with a remark. Other tags are replaced.
//
// Counters: tagged-recompute, tagged-save. Notes: gathers (the number of FSDP all-gathers).
// Warnings: no-gathers. Remarks: kept-tag. If the graph has no phase markers, phases are inferred.
// The tags follow autoparallel's force_recompute_fsdp_all_gather and torchtitan's
// reshard-after-forward. O(nodes + edges).
Result<PassResult> fsdp_gathers(Graph& graph, const FsdpGathersOptions& options, PassContext& context);

}  // namespace fxopt
