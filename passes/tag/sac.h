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
    field(
        "save-first-residual", self.save_first_residual,
        "Give the tag MUST_SAVE to the first residual sum of each layer. A recompute of the calls after this sum then "
        "does not repeat the calls before it.");
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
// Under every policy, three kinds of calls get MUST_SAVE if they get a tag:
// - A call that cannot be repeated, or that returns a symbolic integer. If `recompute` selects the
//   call, the call also gets a remark. Exception: unless `recompute` or `save` selects it, a
//   getitem or a wait gets the tag of its input.
// - A call that would get a recompute tag, and whose result is read by a recomputed call of another
//   layer or region (layers.h). With this rule, recomputing a layer does not recompute the previous
//   layer.
// - With `save-first-residual`, the first residual sum of each layer. This call gets a tag even
//   with policy=none or in a module of `exclude`.
//
// A residual sum is an `add` of two tensors of equal sizes. One tensor was computed inside the
// layer, and the other tensor outside. If `save-first-residual` is set and no layer has a residual
// sum, the pass warns (`no-residual`).
//
// With the default marked=keep, values with the save mark `ap_must_save` stay untagged, with a
// remark (policy.h). A tag that the policy chooses records the pass `sac` as its source
// (TagSource::pass). If `recompute` or `save` selects the call, the user chose the tag, and the tag
// records no source. Other passes then treat the tag like a tag in the input file.
//
// The default of `exclude` names the modules lm_head and loss, the usual head of a model. If the
// default is in use and no forward call is in these modules, the policy may tag the head for
// recompute. The remark `no-head` then names one call after the last layer: the first call that the
// policy tags for recompute.
//
// Counters: tagged-save, tagged-recompute. Warnings: no-layers, no-residual. Remarks: marks-kept,
// no-head.
// If the graph has no phase markers, phases are inferred. The policies follow torchtitan's
// memory_policy.py (full, eager). The set of saved ops is its `_get_default_save_ops`. O(nodes +
// edges).
Result<PassResult> sac(Graph& graph, const SacOptions& options, PassContext& context);

}  // namespace fxopt
