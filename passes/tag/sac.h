#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/options.h"
#include "passes/pass/pass.h"
#include "passes/tag/policy.h"

namespace fxopt {

enum class SacPolicy : uint8_t {
  kFull,
  kPerOp,
  kNone,
};
template <>
struct EnumNames<SacPolicy> {
  static constexpr EnumName<SacPolicy> kAll[] = {
      {SacPolicy::kFull, "full"}, {SacPolicy::kPerOp, "per-op"}, {SacPolicy::kNone, "none"}};
};

struct SacOptions {
  SacPolicy policy = SacPolicy::kPerOp;
  int64_t recompute_every = 2;
  std::vector<std::string> recompute_matmuls_of = {"moe.router.gate"};
  std::vector<NodePattern> recompute;
  std::vector<NodePattern> save;
  std::vector<std::string> save_ops;
  bool save_first_residual = false;
  std::vector<std::string> exclude = {"lm_head", "loss"};
  TagStrength strength = TagStrength::kMust;
  MarkedValues marked = MarkedValues::kKeep;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("policy", self.policy,
          "full: recompute everything that can be recomputed; per-op: save matmuls, attention and reductions across "
          "ranks; none: tag only the calls that the options `recompute` and `save` select.");
    field("recompute", self.recompute,
          "Calls to tag MUST_RECOMPUTE under any policy: comma-separated module::op patterns with '*', such as "
          "layers.*.feed_forward::aten.silu.default. A pattern without '::' is an op.");
    field("save", self.save,
          "Calls to tag MUST_SAVE under any policy: comma-separated module::op patterns with '*', such as "
          "layers.*::aten.mm.default. If `recompute` selects the call too, `save` wins.");
    field("recompute-every", self.recompute_every,
          "With policy=per-op: recompute every N-th matmul of a layer. 0 saves all matmuls. torchtitan uses 2.");
    field("recompute-matmuls-of", self.recompute_matmuls_of,
          "With policy=per-op: modules whose matmuls are always recomputed, as comma-separated parts of module paths. "
          "`recompute-every` does not count these matmuls.");
    field("save-ops", self.save_ops,
          "With policy=per-op: comma-separated ops to save instead of matmuls, attention and reductions across ranks.");
    field("save-first-residual", self.save_first_residual,
          "Tag the first residual sum of each layer MUST_SAVE, so that recomputing later calls of the layer does not "
          "recompute earlier ones.");
    field("exclude", self.exclude,
          "Comma-separated top-level modules whose calls get no tags. Their values are then saved.");
    field("strength", self.strength, kStrengthHelp);
    field("marked", self.marked, kMarkedHelp);
  }
  Status check() const;
};

// Tags forward nodes for selective activation checkpointing. With policy=full and policy=per-op,
// every forward call outside of `exclude` that has no tag yet gets a save or recompute tag. With
// policy=none, only calls that `recompute` or `save` selects get a tag. Existing tags stay.
//
// A call that gets a tag gets MUST_SAVE in two cases:
// - The call cannot be repeated. If `recompute` selects the call, the call also gets a remark.
// - A recomputed call of another layer or region reads the result (layers.h). With this rule,
//   recomputing a layer does not recompute the previous layer.
//
// The first residual sum of a layer is its first `add` of two tensors of equal sizes. One tensor
// was computed inside the layer, and the other tensor outside. If no layer has a residual sum, the
// pass warns (`no-residual`).
//
// With the default marked=keep, values with the save mark `ap_must_save` stay untagged, with a
// remark (policy.h). A tag records that `sac` wrote it. A tag on a call that `recompute` or `save`
// selects counts as a tag of the user, so it does not record `sac`.
//
// If `exclude` has its default and no forward call is in one of its modules, the remark `no-head`
// names the first call after the last layer that is recomputed.
//
// Counters: tagged-save, tagged-recompute. Warnings: no-layers, no-residual. Remarks: marks-kept,
// no-head.
// If the graph has no phase markers, phases are inferred. The policies follow torchtitan's
// memory_policy.py (full, eager). The set of saved ops is its `_get_default_save_ops`. O(nodes +
// edges).
Result<PassResult> sac(Graph& graph, const SacOptions& options, PassContext& context);

}  // namespace fxopt
