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
          "recompute: backward gathers parameters again (reshard after forward); save: it has what forward gathered.");
    field("through", self.through,
          "chain: what is tagged reaches through all that only lays out, casts, splits or joins gathered parameters; "
          "wait: to the wait, so that a transposed parameter is saved by partition{compat=torch}.");
    field("strength", self.strength, kStrengthHelp);
    field("marked", self.marked, kMarkedHelp);
  }
  Status check() const;
};

// Tags what FSDP gathers in forward: all-gathers whose data are parameters alone, by recorded or inferred roles, with the
// casts and views before them and what follows. `save` tags the values on whose memory the last of it lies. MUST_SAVE that
// is there stays, with a remark; other tags give way.
//
// Counters: tagged-recompute, tagged-save. Notes: gathers (found). Warnings: no-gathers. Remarks: kept-tag. Phases are derived where the
// graph marks none. Rule and reach after autoparallel's force_recompute_fsdp_all_gather and torchtitan's reshard-after-forward.
// O(nodes + edges).
Result<PassResult> fsdp_gathers(Graph& graph, const FsdpGathersOptions& options, PassContext& context);

}  // namespace fxopt
